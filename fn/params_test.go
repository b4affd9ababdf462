// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
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

// TestWhatIsStillToBeSentIsNothingToReport: Crossplane runs a function once more with what it
// requires, in each reconcile, and only what it answers then comes to anything.
func TestWhatIsStillToBeSentIsNothingToReport(t *testing.T) {
	l, reg, decisions := listen(), prometheus.NewRegistry(), &logged{}
	l.LogDecisions(decisions)

	if err := l.Register(reg); err != nil {
		t.Fatal(err)
	}

	const byName = "{name: default, namespace: platform}"

	cluster := []*fnv1.Resource{limited(t, byName, "Enforce", readable), aLimit(t, byName, "[mysql]")}

	for range 3 {
		req := call(t, steadyXR, observedObject, sized("small", "mysql"), "")
		req.RequiredResources = nil

		for round, want := range []string{"nothing is allowed without the required AllowancePolicies", "its parameters cannot be read", "in progress"} {
			rsp, err := l.RunFunction(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}

			got := rsp.GetConditions()[0].GetMessage()
			if !strings.Contains(got, want) || strings.Contains(got, "problem") {
				t.Errorf("round %d: the condition says %q, want %q", round, got, want)
			}

			send(req, rsp.GetRequirements(), cluster)
		}
	}

	if len(l.lines) > 0 {
		t.Errorf("logged %q", l.lines)
	}

	if len(decisions.entries) != 3 {
		t.Errorf("%d decisions are logged, want one in each reconcile", len(decisions.entries))
	}

	got := counted(t, reg)
	delete(got, "kausality_function_decision_seconds")

	want := map[string]float64{
		"kausality_function_calls_total outcome=asking":   6,
		"kausality_function_calls_total outcome=allowed":  3,
		"kausality_function_policy_cost policy=engines":   3,
		"kausality_function_decision_log_bytes_total":     0,
		"kausality_function_decision_log_decisions_total": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestModeFatalWaitsForWhatItAsksFor: Crossplane sends nothing after a fatal result.
func TestModeFatalWaitsForWhatItAsksFor(t *testing.T) {
	const byName = "{name: default, namespace: platform}"

	for engines, want := range map[string]string{"[mysql]": "", "[postgres]": "engine of Object db-obj (postgres → mysql)"} {
		cluster := []*fnv1.Resource{limited(t, byName, "Enforce", readable), aLimit(t, byName, engines)}
		rsp, _ := answer(t, call(t, steadyXR, observedObject, sized("small", "mysql"), "mode: Fatal"), cluster)

		if got := rsp.GetResults(); fatal(rsp) != (want != "") || want != "" && !strings.Contains(got[0].GetMessage(), want) {
			t.Errorf("with %s: %v, want %q", engines, got, want)
		}
	}
}

func TestOnlyParametersThatWereRequiredCount(t *testing.T) {
	const (
		byName   = "{name: default, namespace: platform}"
		selected = "{namespace: platform, selector: {matchLabels: {for: engines}}}"
	)

	crowd := make([]*fnv1.Resource, 0, expression.MaxParams+1)
	for i := range cap(crowd) {
		crowd = append(crowd, aLimit(t, fmt.Sprintf("{name: a%d, namespace: platform, labels: {for: engines}}", i), "[mysql]"))
	}

	cases := map[string]struct {
		reason, ref, status string
		// sent is what stands under the key of the parameters.
		sent []*fnv1.Resource
		// missing is what is; empty where the engine may be chosen.
		missing string
	}{
		"Hundred":   {"A hundred are used.", selected, readable, crowd[1:], ""},
		"Many":      {"More are not.", selected, readable, crowd, "more than 100 are found"},
		"OtherKind": {"A requirement of the step may have the name.", byName, readable, []*fnv1.Resource{resourceOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: default, namespace: platform}, spec: {engines: [mysql]}}`)}, "sent something else"},
		"OtherName": {"And ask for another object.", byName, readable, []*fnv1.Resource{aLimit(t, "{name: mine, namespace: platform}", "[mysql]")}, "sent something else"},
		"OtherNamespace": {
			reason: "Or for one of another namespace.", ref: byName, status: readable,
			sent: []*fnv1.Resource{aLimit(t, "{name: default, namespace: mine}", "[mysql]")}, missing: "in another namespace",
		},
		"OldScope": {
			reason: "A kind that had no namespaces before has those of all.", ref: selected, status: ofCluster,
			sent: []*fnv1.Resource{aLimit(t, "{name: a, namespace: mine, labels: {for: engines}}", "[mysql]")}, missing: "in another namespace",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := call(t, steadyXR, observedObject, sized("small", "mysql"), "")
			req.RequiredResources["kausality.io/allowancepolicies"] = &fnv1.Resources{Items: []*fnv1.Resource{limited(t, tc.ref, "Enforce", tc.status)}}

			asked := askedParams(run(t, req))
			if len(asked) != 1 {
				t.Fatalf("asked for %q", asked)
			}

			req.RequiredResources["kausality.io/params/"+asked[0]] = &fnv1.Resources{Items: tc.sent}
			rsp := run(t, req)

			engine := "mysql"
			if tc.missing != "" {
				engine = "postgres"
			}

			checkEngine(t, tc.reason, rsp, engine)

			if got := fmt.Sprint(told(t, rsp), rsp.GetResults()); !strings.Contains(got, tc.missing) {
				t.Errorf("%s\nthe condition says %q, want %q", tc.reason, got, tc.missing)
			}
		})
	}
}

// TestParametersInANamespaceTakeACrossplaneThatSendsThem: one that is too old looks for them
// in none, where another object may be.
func TestParametersInANamespaceTakeACrossplaneThatSendsThem(t *testing.T) {
	const byName = "{name: default, namespace: platform}"

	for name, tc := range map[string]struct {
		status, key, says string
	}{
		"Namespaced": {readable, "", "this Crossplane does not say that it sends functions what is in a namespace"},
		"Cluster":    {ofCluster, "kausality.io/params/platform.example.org/v1/EngineLimit//default", `EngineLimit "default": they have not been sent yet`},
	} {
		req := call(t, steadyXR, observedObject, sized("small", "mysql"), "")
		req.Meta.Capabilities = nil
		req.RequiredResources["kausality.io/allowancepolicies"] = &fnv1.Resources{Items: []*fnv1.Resource{limited(t, byName, "Enforce", tc.status)}}

		rsp := run(t, req)
		if got := fmt.Sprint(told(t, rsp), rsp.GetResults()); !strings.Contains(got, tc.says) {
			t.Errorf("%s: the condition says %q, want %q", name, got, tc.says)
		}

		if asked := askedParams(rsp); len(asked) > 0 {
			t.Errorf("%s: asked for %q in a field that it does not know", name, asked)
		}

		var keys []string

		for key := range rsp.GetRequirements().GetExtraResources() { //nolint:staticcheck // That is the point.
			if strings.HasPrefix(key, "kausality.io/params/") {
				keys = append(keys, key)
			}
		}

		if strings.Join(keys, " ") != tc.key {
			t.Errorf("%s: asked for %q, want %q", name, keys, tc.key)
		}
	}
}
