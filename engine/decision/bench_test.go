// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// benchmarkParent has allowed the change of the managed resource.
const benchmarkParent = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: my-database-xyz
  generation: 12
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/allowances: |
      - kind: Instance
        mutation: spec.forProvider.instanceClass
        generation: 12
        id: "12.0"
        initiator: hans@example.com
        policy: xdatabase-to-rds
        source:
          type: Policy
          name: xdatabase-to-rds
          field: spec.size
        trace:
        - kind: DatabaseClaim
          name: my-database
          generation: 5
          field: spec.size
          attestations:
            metadata.annotations[jira]: INFRA-23232
        - kind: XDatabase
          name: my-database-xyz
          generation: 12
          field: spec.size
      - relation: External
        mutations:
        - Update
        generation: 12
        id: "12.0"
        initiator: hans@example.com
        policy: xdatabase-to-rds
        source:
          type: Policy
          name: xdatabase-to-rds
          field: spec.size
        trace:
        - kind: DatabaseClaim
          name: my-database
          generation: 5
          field: spec.size
          attestations:
            metadata.annotations[jira]: INFRA-23232
        - kind: XDatabase
          name: my-database-xyz
          generation: 12
          field: spec.size
spec: {size: large, claimRef: {name: my-database, namespace: default}}
status:
  conditions:
  - {type: Synced, status: "True", observedGeneration: 11}
  - {type: Ready, status: "True", observedGeneration: 11}
`

// scene is one change to decide on, with the two policies that match it: one
// that allows it, and one for somebody else.
type scene struct {
	request  request.Request
	policies [2]string
	// bound is true where bindings let the user initiate.
	bound bool
	// refused is true where the change is not allowed.
	refused bool
	// limits are the parameters that are found.
	limits []map[string]any
}

// in is the scene with n policies, and a binding for every ten.
func (s scene) in(tb testing.TB, n int) request.Request {
	tb.Helper()

	req := s.request
	req.Basis.Policies = loaded(tb, n, s.policies)

	if s.bound {
		req.Basis.Bindings = bindings(tb, max(1, n/10))
	}

	if s.limits != nil {
		req.Basis.Params = func(expression.ParamQuery) (expression.ParamList, error) {
			return expression.ParamList{Objects: s.limits}, nil
		}
	}

	return req
}

// bindings are n: one for the user of the scenes, and others of the policy and of others, in
// the namespace and elsewhere.
func bindings(tb testing.TB, n int) *policy.Bindings {
	tb.Helper()

	list := make([]*policy.Binding, n)

	for i := range n {
		in := &v1alpha1.AllowanceBinding{Spec: v1alpha1.AllowanceBindingSpec{
			Policy:   "deployment-to-replicaset",
			Subjects: []v1alpha1.BindingSubject{{Kind: "Group", Name: "platform-team"}},
		}}
		in.Namespace, in.Name = "shop", "binding"

		if i > 0 {
			in.Namespace, in.Name = fmt.Sprintf("namespace-%d", i%100), fmt.Sprintf("binding-%d", i)
		}

		if i%2 > 0 {
			in.Spec.Policy = fmt.Sprintf("other-%d", i)
		}

		b, errs := policy.CompileBinding(in)
		if len(errs) > 0 {
			tb.Fatal(errs)
		}

		list[i] = b
	}

	return policy.NewBindings(list...)
}

func scenes(tb testing.TB) map[string]scene {
	tb.Helper()

	read := func(name string) string {
		raw, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			tb.Fatal(err)
		}

		return string(raw)
	}

	deployment, instance := read("deployment"), read("instance")

	return map[string]scene{
		"object=Deployment": {
			request: requestFor(tb, hans(), deployment, edit(tb, deployment, "checkout:v1.4.2", "checkout:v1.5.0"), ""),
			policies: [2]string{
				`{metadata: {name: deployment-to-replicaset}, spec: {match: {apiGroup: apps, kind: Deployment, fields: [spec.replicas, "spec.template.spec.containers[*].image"], capture: ["metadata.annotations[jira]"]},
				  subjects: [{kind: Group, name: platform-team, mayInitiate: true}, {kind: ServiceAccount, name: deployment-controller, namespace: kube-system}],
				  allow: [{kind: ReplicaSet, mutations: [create, spec.replicas, spec.template]}]}}`,
				`{metadata: {name: emergency}, spec: {match: {kind: Deployment, fields: [spec.template]}, subjects: [{kind: Group, name: oncall, mayInitiate: true}], allow: [{kind: ReplicaSet, mutations: [spec]}]}}`,
			},
		},
		"object=BoundDeployment": {
			request: requestFor(tb, hans(), deployment, edit(tb, deployment, "checkout:v1.4.2", "checkout:v1.5.0"), ""),
			policies: [2]string{
				`{metadata: {name: deployment-to-replicaset}, spec: {bindingMode: Required, match: {apiGroup: apps, kind: Deployment, fields: [spec.replicas, "spec.template.spec.containers[*].image"], capture: ["metadata.annotations[jira]"]},
				  allow: [{kind: ReplicaSet, mutations: [create, spec.replicas, spec.template]}]}}`,
				`{metadata: {name: emergency}, spec: {bindingMode: Optional, match: {kind: Deployment, fields: [spec.template]}, subjects: [{kind: Group, name: oncall, mayInitiate: true}], allow: [{kind: ReplicaSet, mutations: [spec]}]}}`,
			},
			bound: true,
		},
		"object=LimitedDeployment": {
			request: requestFor(tb, hans(), deployment, edit(tb, deployment, "checkout:v1.4.2", "checkout:v1.5.0"), ""),
			policies: [2]string{
				`{metadata: {name: deployment-to-replicaset}, spec: {paramKind: {apiVersion: platform.example.org/v1, kind: Limit}, paramRef: {name: default},
				  match: {apiGroup: apps, kind: Deployment, fields: [spec.replicas, "spec.template.spec.containers[*].image"], cel: ["object.spec.replicas <= params.spec.replicas"]},
				  subjects: [{kind: Group, name: platform-team, mayInitiate: true}],
				  allow: [{kind: ReplicaSet, mutations: [create, spec.replicas, spec.template]}]}}`,
				`{metadata: {name: emergency}, spec: {match: {kind: Deployment, fields: [spec.template]}, subjects: [{kind: Group, name: oncall, mayInitiate: true}], allow: [{kind: ReplicaSet, mutations: [spec]}]}}`,
			},
			limits: []map[string]any{{
				"metadata": map[string]any{"name": "default", "namespace": "shop"}, "spec": map[string]any{"replicas": int64(1000)},
			}},
		},
		"object=BoundLimitedDeployment": {
			request: requestFor(tb, hans(), deployment, edit(tb, deployment, "checkout:v1.4.2", "checkout:v1.5.0"), ""),
			policies: [2]string{
				`{metadata: {name: deployment-to-replicaset}, spec: {bindingMode: Required, paramKind: {apiVersion: platform.example.org/v1, kind: Limit}, paramRef: {name: default},
				  match: {apiGroup: apps, kind: Deployment, fields: [spec.replicas, "spec.template.spec.containers[*].image"],
				  variables: [{name: most, expression: "params.spec.replicas"}], cel: ["object.spec.replicas <= variables.most"]},
				  allow: [{kind: ReplicaSet, mutations: [create, spec.replicas, spec.template]}]}}`,
				`{metadata: {name: emergency}, spec: {match: {kind: Deployment, fields: [spec.template]}, subjects: [{kind: Group, name: oncall, mayInitiate: true}], allow: [{kind: ReplicaSet, mutations: [spec]}]}}`,
			},
			bound: true,
			limits: []map[string]any{{
				"metadata": map[string]any{"name": "default", "namespace": "shop"}, "spec": map[string]any{"replicas": int64(1000)},
			}},
		},
		"object=RefusedManagedResource": {
			request: requestFor(tb, crossplane(), instance, edit(tb, instance, "    instanceClass: db.t3.medium\n    dbName: ", "    instanceClass: db.t3.medium\n    dbName: other-"), benchmarkParent),
			policies: [2]string{
				`{metadata: {name: xdatabase-to-rds}, spec: {match: {apiGroup: example.org, kind: XDatabase, fields: [spec.size]},
				  subjects: [{kind: ServiceAccount, name: crossplane, namespace: crossplane-system}],
				  allow: [{kind: Instance, mutations: [spec.forProvider.instanceClass]}, {relation: External, mutations: [Update]}]}}`,
				`{metadata: {name: emergency}, spec: {match: {kind: Instance, fields: [spec.forProvider.engine]}, subjects: [{kind: Group, name: oncall, mayInitiate: true}], allow: [{kind: Other, mutations: [spec]}]}}`,
			},
			refused: true,
		},
		"object=ManagedResource": {
			request: requestFor(tb, crossplane(), instance, edit(tb, instance, "    instanceClass: db.t3.medium\n    dbName", "    instanceClass: db.t3.large\n    dbName"), benchmarkParent),
			policies: [2]string{
				`{metadata: {name: xdatabase-to-rds}, spec: {match: {apiGroup: example.org, kind: XDatabase, fields: [spec.size]},
				  subjects: [{kind: ServiceAccount, name: crossplane, namespace: crossplane-system}],
				  allow: [{kind: Instance, mutations: [spec.forProvider.instanceClass]}, {relation: External, mutations: [Update]}]}}`,
				`{metadata: {name: emergency}, spec: {match: {kind: Instance, fields: [spec.forProvider]}, subjects: [{kind: Group, name: oncall, mayInitiate: true}], allow: [{kind: Other, mutations: [spec]}]}}`,
			},
		},
	}
}

// loaded are n policies: those that match as far as there is room, and others
// about other kinds.
func loaded(tb testing.TB, n int, matching [2]string) *policy.Set {
	tb.Helper()

	list := make([]string, 0, n)

	for i := range n {
		if i < len(matching) {
			list = append(list, matching[i])
		} else {
			list = append(list, about(fmt.Sprintf("other-%d", i), i))
		}
	}

	for i := range list {
		list[i] = strings.Replace(list[i], "{metadata", "{kind: AllowancePolicy, metadata", 1)
	}

	return set(tb, strings.Join(list, "\n---\n"))
}

// about is a policy about one of 500 other kinds.
func about(name string, i int) string {
	return fmt.Sprintf(`{metadata: {name: %s}, spec: {match: {apiGroup: g%d.example.com, kind: Kind%d, fields: [spec.size, spec.engine]},
		subjects: [{kind: Group, name: platform-team, mayInitiate: true}], allow: [{kind: X%d, mutations: [spec]}]}}`, name, i%7, i%500, i)
}

// BenchmarkDecide measures a change, with more and more
// policies of which two match, beside the floor: decoding the object from JSON.
func BenchmarkDecide(b *testing.B) {
	for name, s := range scenes(b) {
		for _, n := range []int{1, 100, 10_000} {
			req := s.in(b, n)

			b.Run(fmt.Sprintf("%s/policies=%d/by=kausality", name, n), func(b *testing.B) {
				b.ReportAllocs()

				for b.Loop() {
					if d := decision.Decide(req); d.Allowed() == s.refused {
						b.Fatalf("the change is allowed, or not: %+v", d)
					}
				}
			})
			b.Run(fmt.Sprintf("%s/policies=%d/by=json", name, n), func(b *testing.B) { decodeJSON(b, req.New) })
		}
	}
}

// BenchmarkDecideRatio decides under 10,000 policies of which one is about the object, with
// 1,000 bindings where these matter, and under that one alone, in turns: of-one-x is how many
// times as long it takes.
func BenchmarkDecideRatio(b *testing.B) {
	const turn = 20

	for name, s := range scenes(b) {
		few := s.in(b, 1)
		s.policies[1] = about("none", 0)
		many := s.in(b, 10_000)

		b.Run(name, func(b *testing.B) {
			var took [2]time.Duration

			for b.Loop() {
				for i, req := range []request.Request{few, many} {
					start := time.Now()

					for range turn {
						if d := decision.Decide(req); d.Allowed() == s.refused {
							b.Fatalf("the change is allowed, or not: %+v", d)
						}
					}

					took[i] += time.Since(start)
				}
			}

			b.ReportMetric(float64(took[1])/float64(took[0]), "of-one-x")
		})
	}
}

// maxAllocations is what a decision without CEL may take, and ofAnElement what a change in a list takes besides, whose element is
// found by its key: Deployments get another image.
const (
	maxAllocations = 150
	ofAnElement    = 40
)

func TestADecisionAllocatesLittleHoweverManyPoliciesThereAre(t *testing.T) {
	for name, s := range scenes(t) {
		t.Run(name, func(t *testing.T) {
			allocations := func(n int) float64 {
				req := s.in(t, n)

				return testing.AllocsPerRun(100, func() { decision.Decide(req) })
			}

			most := maxAllocations
			if strings.HasSuffix(name, "Deployment") {
				most += ofAnElement
			}

			few, many := allocations(2), allocations(1_000)
			if few > float64(most) && !s.refused || many > few {
				t.Errorf("%v allocations under 2 policies, %v under 1,000, want at most %d and no more", few, many, most)
			}
		})
	}
}

func decodeJSON(b *testing.B, u *unstructured.Unstructured) {
	b.Helper()
	b.ReportAllocs()

	raw, err := json.Marshal(u.Object)
	if err != nil {
		b.Fatal(err)
	}

	for b.Loop() {
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			b.Fatal(err)
		}
	}
}
