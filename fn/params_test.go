// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// Statuses of a policy with parameters, of generation 3.
const (
	readable   = `{paramScope: Namespaced, conditions: [{type: ParametersReadable, status: "True", observedGeneration: 3}]}`
	ofCluster  = `{paramScope: Cluster, conditions: [{type: ParametersReadable, status: "True", observedGeneration: 3}]}`
	unreadable = `{paramScope: Namespaced, conditions: [{type: ParametersReadable, status: "False", observedGeneration: 3}]}`
	readBefore = `{paramScope: Namespaced, conditions: [{type: ParametersReadable, status: "True", observedGeneration: 2}]}`
)

// limited is a policy that lets Crossplane choose an engine that a parameter lists.
func limited(t *testing.T, ref, mode, status string) *fnv1.Resource {
	t.Helper()

	return resourceOf(t, fmt.Sprintf(`
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: engines, generation: 3, labels: {kind.kausality.io/Object: ""}}
spec:
  enforcementMode: %s
  paramKind: {apiVersion: platform.example.org/v1, kind: EngineLimit}
  paramRef: %s
  match: {kind: Object, fields: [spec.forProvider.engine], cel: ["object.spec.forProvider.engine in params.spec.engines"]}
  subjects: [{kind: ServiceAccount, name: crossplane, namespace: crossplane-system, mayInitiate: true}]
  allow: [{relation: External, mutations: [Update]}]
status: %s`, mode, ref, status))
}

func aLimit(t *testing.T, meta, engines string) *fnv1.Resource {
	t.Helper()

	return resourceOf(t, fmt.Sprintf(`
apiVersion: platform.example.org/v1
kind: EngineLimit
metadata: %s
spec: {engines: %s}`, meta, engines))
}

func TestTheFunctionAsksForTheParametersThatCrossplaneMayRead(t *testing.T) {
	const (
		byName = "{name: default, namespace: platform}"
		some   = "{namespace: platform, selector: {matchLabels: {for: engines}, matchExpressions: [{key: tier, operator: NotIn, values: [test]}]}}"
	)

	cases := map[string]struct {
		reason, ref, mode, status string
		limits                    []*fnv1.Resource
		asked                     []string
		engine                    string
	}{
		"Named": {
			"By name, in the namespace that the policy names.", byName, "Enforce", readable,
			[]*fnv1.Resource{aLimit(t, "{name: default, namespace: platform}", "[mysql]"), aLimit(t, "{name: default, namespace: other}", "[]")},
			[]string{"platform.example.org/v1/EngineLimit/platform/default"},
			"mysql",
		},
		"False": {
			"What it does not list stays.", byName, "Enforce", readable,
			[]*fnv1.Resource{aLimit(t, "{name: default, namespace: platform}", "[postgres]")},
			[]string{"platform.example.org/v1/EngineLimit/platform/default"},
			"postgres",
		},
		"Missing": {
			"One that is not there lists nothing.", byName, "Enforce", readable, nil,
			[]string{"platform.example.org/v1/EngineLimit/platform/default"},
			"postgres",
		},
		"Selected": {
			"By labels, and by what else the selector says.", some, "Enforce", readable,
			[]*fnv1.Resource{
				aLimit(t, "{name: a, namespace: platform, labels: {for: engines}}", "[mysql]"),
				aLimit(t, "{name: b, namespace: platform, labels: {for: engines, tier: test}}", "[]"),
				aLimit(t, "{name: c, namespace: platform}", "[]"),
			},
			[]string{"platform.example.org/v1/EngineLimit/platform?for=engines,tier notin (test)"},
			"mysql",
		},
		"ClusterScoped": {
			"Where the kind has no namespaces, in none.", byName, "Enforce", ofCluster,
			[]*fnv1.Resource{aLimit(t, "{name: default}", "[mysql]")},
			[]string{"platform.example.org/v1/EngineLimit//default"},
			"mysql",
		},
		"Shadow": {
			"Also of a policy in Shadow mode.", byName, "Shadow", readable,
			[]*fnv1.Resource{aLimit(t, "{name: default, namespace: platform}", "[mysql]")},
			[]string{"platform.example.org/v1/EngineLimit/platform/default"},
			"postgres",
		},
		"NoNamespace": {
			"None is asked for in no namespace.", "{name: default}", "Enforce", readable,
			[]*fnv1.Resource{aLimit(t, "{name: default, namespace: platform}", "[mysql]")},
			nil, "postgres",
		},
		"Unreadable": {
			"One that Crossplane may not read would fail all of the XR.", byName, "Enforce", unreadable,
			[]*fnv1.Resource{aLimit(t, "{name: default, namespace: platform}", "[mysql]")},
			nil, "postgres",
		},
		"NotKnown": {
			"So might one of which nobody has found out.", byName, "Enforce", "{}",
			[]*fnv1.Resource{aLimit(t, "{name: default, namespace: platform}", "[mysql]")},
			nil, "postgres",
		},
		"OfBefore": {
			"Nor does what was found of another generation count.", byName, "Enforce", readBefore,
			[]*fnv1.Resource{aLimit(t, "{name: default, namespace: platform}", "[mysql]")},
			nil, "postgres",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := append([]*fnv1.Resource{limited(t, tc.ref, tc.mode, tc.status)}, tc.limits...)
			rsp, _ := answer(t, call(t, steadyXR, observedObject, sized("small", "mysql"), ""), cluster)

			if asked := askedParams(rsp); !slices.Equal(asked, tc.asked) {
				t.Errorf("%s\nasked for %q, want %q", tc.reason, asked, tc.asked)
			}

			checkEngine(t, tc.reason, rsp, tc.engine)
		})
	}
}

// askedParams are the keys of the parameters that an answer requires.
func askedParams(rsp *fnv1.RunFunctionResponse) []string {
	var out []string

	for key := range rsp.GetRequirements().GetResources() {
		if key, ok := strings.CutPrefix(key, "kausality.io/params/"); ok {
			out = append(out, key)
		}
	}

	return out
}

// TestParametersByWhichNothingIsDecidedAreNotAskedFor: Crossplane would wait for their kind
// where that is gone.
func TestParametersByWhichNothingIsDecidedAreNotAskedFor(t *testing.T) {
	cluster := []*fnv1.Resource{
		limited(t, "{name: default, namespace: platform}", "Enforce", readable), aLimit(t, "{name: default, namespace: platform}", "[mysql]"),
	}

	rsp, _ := answer(t, call(t, steadyXR, observedObject, sized("small", "postgres"), ""), cluster)
	if asked := askedParams(rsp); len(asked) > 0 {
		t.Errorf("asked for %q though nothing is to be changed", asked)
	}
}
