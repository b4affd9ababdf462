// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// recordedPolicies are about a root: who may change its size, and its zone.
const recordedPolicies = `
kind: AllowancePolicy
metadata: {name: size, generation: 3}
spec:
  match: {kind: Shop, fields: [spec.size], capture: ["metadata.annotations[ticket]", "metadata.annotations[api-token]"]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: Instance, mutations: [spec.size]}]
---
kind: AllowancePolicy
metadata: {name: zone, generation: 7}
spec:
  match: {kind: Shop, fields: [spec.zone]}
  subjects: [{kind: Group, name: network, mayInitiate: true}]
  allow: [{kind: Instance, mutations: [spec.zone]}]
`

const shop = `
apiVersion: example.org/v1
kind: Shop
metadata: {name: s, generation: 1, annotations: {ticket: OPS-1, api-token: hunter2}}
spec: {size: SIZE, zone: ZONE}
`

// denying is an Enforcement that refuses, and excepts some from that.
func denying(t *testing.T, exceptions ...v1alpha1.Exception) *enforcement.Enforcement {
	t.Helper()

	e := &v1alpha1.Enforcement{}
	e.Name, e.Generation = "shops", 2
	e.Spec.ValidationActions = []v1alpha1.ValidationAction{v1alpha1.ActionDeny}
	e.Spec.Match.ResourceRules = []v1alpha1.ResourceRule{{APIGroups: []string{"example.org"}, Resources: []string{"shops"}}}
	e.Spec.Exceptions = exceptions

	out, errs := enforcement.Compile(e)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	return out
}

// shopRequest changes a shop's size and zone.
func shopRequest(t *testing.T, u policy.User, size, zone string) request.Request {
	t.Helper()

	req := requestFor(t, u, edit(t, shop, "SIZE", "small", "ZONE", "a"), edit(t, shop, "SIZE", size, "ZONE", zone), "")
	req.Basis.Policies = set(t, recordedPolicies)
	req.Basis.Enforcements = []*enforcement.Enforcement{denying(t)}
	req.Resource = schema.GroupResource{Group: "example.org", Resource: "shops"}

	return req
}

// TestADecisionIsRecordedWithWhatItWasMadeBy gives who asks later the policies,
// windows and Enforcements of that moment.
func TestADecisionIsRecordedWithWhatItWasMadeBy(t *testing.T) {
	type recorded struct {
		Outcome                        decision.Outcome
		Fields, Policies, Enforcements []string
		Attestations                   map[string]string
	}

	anna := policy.User{Name: "anna", Groups: []string{"app-team"}}
	ticket := map[string]string{"metadata.annotations[ticket]": "OPS-1", "metadata.annotations[api-token]": "(masked)"}
	governed := []string{"shops@2"}

	cases := map[string]struct {
		reason string
		req    func(t *testing.T) request.Request
		want   recorded
	}{
		"Allowed": {
			reason: "The policy that allowed it is named with its generation, and what it captured, but no credential.",
			req:    func(t *testing.T) request.Request { t.Helper(); return shopRequest(t, hans(), "large", "a") },
			want:   recorded{decision.OutcomeAllowed, []string{"spec.size"}, []string{"size@3"}, governed, ticket},
		},
		"Denied": {
			reason: "What is refused tells of the policies that would allow it, and the ticket that was of no use.",
			req:    func(t *testing.T) request.Request { t.Helper(); return shopRequest(t, anna, "large", "b") },
			want:   recorded{decision.OutcomeDenied, []string{"spec.size", "spec.zone"}, []string{"size@3", "zone@7"}, governed, ticket},
		},
		"Part": {
			reason: "Of a change that is allowed in part, the fields that are not tell most.",
			req:    func(t *testing.T) request.Request { t.Helper(); return shopRequest(t, hans(), "large", "b") },
			want:   recorded{decision.OutcomeDenied, []string{"spec.zone"}, []string{"zone@7"}, governed, ticket},
		},
		"Exception": {
			reason: "An exception is of a generation of its Enforcement, and its reason is attested.",
			req: func(t *testing.T) request.Request {
				t.Helper()

				req := shopRequest(t, anna, "small", "b")
				req.Basis.Enforcements = []*enforcement.Enforcement{denying(t, v1alpha1.Exception{
					Name: "move", Subjects: []v1alpha1.Subject{{Kind: "Group", Name: "app-team"}}, Mutations: []string{"spec.zone"},
					Until: metav1.NewTime(req.Basis.Now.Add(time.Hour)), Reason: "INFRA-7",
				})}

				return req
			},
			want: recorded{
				decision.OutcomeAllowed,
				[]string{"spec.zone"},
				[]string{"shops/move@2"},
				governed,
				map[string]string{"exception": "shops/move: INFRA-7"},
			},
		},
		"Window": {
			reason: "A window is named with its generation, as a policy is.",
			req: func(t *testing.T) request.Request {
				t.Helper()

				req := shopRequest(t, policy.User{Name: crossplaneUser}, "small", "b")
				w := v1alpha1.UpgradeAllowance{ObjectMeta: metav1.ObjectMeta{Name: "upgrade", Generation: 5}}
				w.Spec.ServiceAccount = crossplaneUser
				w.Spec.ValidFrom, w.Spec.ValidUntil = metav1.NewTime(req.Basis.Now.Add(-time.Hour)), metav1.NewTime(req.Basis.Now.Add(time.Hour))
				w.Spec.Allow = []v1alpha1.Permission{{Kind: "Shop", Mutations: []string{"spec.zone"}}}
				req.Basis.Upgrades = compiled(t, w)

				return req
			},
			want: recorded{decision.OutcomeAllowed, []string{"spec.zone"}, []string{"upgrade@5"}, governed, nil},
		},
		"Ungoverned": {
			reason: "Nothing is told of what nobody governs.",
			req: func(t *testing.T) request.Request {
				t.Helper()

				req := shopRequest(t, anna, "small", "b")
				req.Basis.Policies, req.Basis.Enforcements = nil, nil

				return req
			},
			want: recorded{Outcome: decision.OutcomeUngoverned, Fields: []string{"spec.zone"}},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decision.Decide(tc.req(t))
			got := recorded{
				Outcome: d.Outcome(), Fields: d.Fields(), Policies: names(d.Policies()), Enforcements: names(d.Governing()),
				Attestations: d.Attestations,
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func names(list []finding.Source) []string {
	if len(list) == 0 {
		return nil
	}

	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.String()
	}

	return out
}

// TestARefusalSaysWhyOfEachField so that clients can show it beside the field.
func TestARefusalSaysWhyOfEachField(t *testing.T) {
	anna := policy.User{Name: "anna"}

	d := decision.Decide(shopRequest(t, anna, "large", "b"))
	want := []decision.Cause{
		{Field: "spec.size", Message: `policy "size": only Group platform-team may, not anna ` +
			`(generation 3 of AllowancePolicy "size", generation 2 of Enforcement "shops")`},
		{Field: "spec.zone", Message: `policy "zone": only Group network may, not anna ` +
			`(generation 7 of AllowancePolicy "zone", generation 2 of Enforcement "shops")`},
	}

	if diff := cmp.Diff(want, d.Causes()); diff != "" {
		t.Errorf("causes of an update, -want, +got:\n%s", diff)
	}

	gone := shopRequest(t, anna, "small", "a")
	gone.Operation, gone.New = request.OperationDelete, nil

	d = decision.Decide(gone)
	if got := d.Causes(); len(got) != 1 || got[0].Field != "" || !strings.Contains(got[0].Message, "delete") {
		t.Errorf("causes of a deletion, which is of no field: %+v", got)
	}

	forged := shopRequest(t, anna, "small", "a")
	forged.New.SetAnnotations(map[string]string{"ticket": "OPS-1", "api-token": "hunter2", v1alpha1.AnnotationInitialized: "no", v1alpha1.AnnotationGate: "mine"})

	d = decision.Decide(forged)
	if got := d.Causes(); len(got) != 1 || got[0].Field != "metadata.annotations[kausality.io/gate]" {
		t.Errorf("causes of a forgery: %+v", got)
	}
}

// TestTheCausesOfARefusalAreBounded and say how many are left out.
func TestTheCausesOfARefusalAreBounded(t *testing.T) {
	req := shopRequest(t, policy.User{Name: "anna"}, "small", "a")
	for i := range 100 {
		if err := unstructured.SetNestedField(req.New.Object, "x", "spec", fmt.Sprintf("field%03d", i)); err != nil {
			t.Fatal(err)
		}
	}

	d := decision.Decide(req)

	got := d.Causes()
	if len(got) != 65 || got[63].Field != "spec.field063" || got[64] != (decision.Cause{Message: "and 36 more"}) {
		t.Errorf("%d causes, the last %+v", len(got), got[len(got)-1])
	}
}

// TestAnExpressionThatFailsIsFoundAmongProblems by which policy or Enforcement it
// is in, so that it can be counted.
func TestAnExpressionThatFailsIsFoundAmongProblems(t *testing.T) {
	req := shopRequest(t, hans(), "large", "a")
	req.Basis.Policies = set(t, strings.Replace(recordedPolicies, "fields: [spec.size],", `fields: [spec.size], cel: ["object.spec.none == 1"],`, 1))

	e := &v1alpha1.Enforcement{}
	e.Name = "shops"
	e.Spec.Match.ResourceRules = []v1alpha1.ResourceRule{{APIGroups: []string{"example.org"}, Resources: []string{"shops"}}}
	e.Spec.MatchConditions = []v1alpha1.MatchCondition{{Name: "c", Expression: "object.spec.none == 1"}}

	compiled, errs := enforcement.Compile(e)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	req.Basis.Enforcements = []*enforcement.Enforcement{compiled}

	list := expression.EvaluationErrors(decision.Decide(req).Problems...)
	got := make([]string, 0, len(list))

	for _, failed := range list {
		got = append(got, failed.Kind+" "+failed.Name+": "+failed.Error())
	}

	// Which key is not said, for the shop has a credential.
	want := []string{
		`Enforcement shops: enforcement "shops": cannot evaluate CEL "object.spec.none == 1": no such key`,
		`AllowancePolicy size: policy "size": cannot evaluate CEL "object.spec.none == 1": no such key`,
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
