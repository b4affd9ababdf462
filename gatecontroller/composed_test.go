// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}

func TestWithoutGatesOnlyWhatIsNamedIsFollowed(t *testing.T) {
	c := &configuration{composed: &composed{}}
	xr := parse(t, "{apiVersion: shop.example.org/v1, kind: XShop, spec: {resourceRefs: []}, status: {conditions: [{type: Kausality, status: 'True'}]}}")
	named := []servedKind{{gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}}}

	gated, watched, err := c.follow(t.Context(), append([]servedKind{{gvk: xr.GroupVersionKind()}}, named...), named)
	if err != nil || len(gated) != 1 || len(watched) != 1 || !c.followed {
		t.Errorf("follow: %v, %v, %v, followed %v", gated, watched, err, c.followed)
	}

	if !c.composed.minds(parse(t, "{apiVersion: apps/v1, kind: Deployment}")) || c.composed.minds(parse(t, "{apiVersion: v1, kind: Secret}")) {
		t.Error("what is named is our business, and nothing else")
	}
}

func TestGuardsFromBeforeTellWhatToGoOnGuarding(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	deletes := rules{}
	deletes.add("old.example.org", "vaults", opDelete)

	guard := deleteGuard(namedRules(deletes))
	c := &configuration{resolver: &resolver{live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(guard).Build()}}

	got, err := c.guardedBefore(t.Context())
	if err != nil || len(got) != 1 || !got[schema.GroupResource{Group: "old.example.org", Resource: "vaults"}] {
		t.Errorf("guarded before: %v, %v", got, err)
	}

	c.resolver.live = fake.NewClientBuilder().WithScheme(scheme).Build()
	if got, err := c.guardedBefore(t.Context()); err != nil || got == nil || len(got) > 0 {
		t.Errorf("nothing was guarded: %v, %v", got, err)
	}
}

func TestTheFirstAndTheLastUngatedResourceOfAKindArePrompted(t *testing.T) {
	x := newUngated(newPrompt())
	gvk := schema.GroupVersionKind{Group: "nop.crossplane.io", Version: "v1alpha1", Kind: "NopResource"}

	for i, step := range []struct {
		name               string
		is, isNew, prompts bool
		count              int
	}{
		{"a", false, false, false, 0},
		{"a", true, true, true, 1},
		{"a", true, false, false, 1},
		{"b", true, true, false, 2},
		{"a", false, false, false, 1},
		{"c", false, false, false, 1},
		{"b", false, false, true, 0},
	} {
		if got := x.set(gvk, types.NamespacedName{Name: step.name}, step.is); got != step.isNew {
			t.Errorf("step %d: new %v, want %v", i, got, step.isNew)
		}

		prompted := false
		select {
		case <-x.prompt.now:
			prompted = true
		default:
		}

		if got := x.count(gvk.GroupKind()); got != step.count || prompted != step.prompts {
			t.Errorf("step %d: %d, prompted %v, want %d, %v", i, got, prompted, step.count, step.prompts)
		}
	}

	x.set(gvk, types.NamespacedName{Name: "a"}, true)
	x.keep([]servedKind{{gvk: schema.GroupVersionKind{Kind: "Other"}}})

	if got := x.count(gvk.GroupKind()); got != 0 {
		t.Errorf("of a kind that is no longer watched: %d", got)
	}
}

func TestAPolicyTellsWhichOfItsKindsAreNotGated(t *testing.T) {
	c := &configuration{ungated: newUngated(newPrompt())}
	list := documents[v1alpha1.AllowancePolicy](t, `{metadata: {generation: 3}, spec: {match: {kind: Yard}, allow: [{kind: Widget}, {kind: Nop, apiGroup: n.example.org}]}}`)
	kinds := []servedKind{
		{gvk: schema.GroupVersionKind{Group: "t.example.org", Kind: "Widget"}, ungateable: true},
		{gvk: schema.GroupVersionKind{Group: "n.example.org", Kind: "Nop"}, managed: true},
		{gvk: schema.GroupVersionKind{Group: "o.example.org", Kind: "Nop"}, ungateable: true},
	}
	c.ungated.set(kinds[1].gvk, types.NamespacedName{Name: "a"}, true)

	c.reportUngated(&list[0], kinds)

	const want = "what the provider does is not gated: Widget.t.example.org has no spec.managementPolicies; " +
		"the provider of Nop.n.example.org does not support management policies"
	if got := list[0].Status.Conditions; len(got) != 1 || got[0].Message != want || got[0].Status != metav1.ConditionFalse {
		t.Errorf("conditions: %v", got)
	}

	c.reportUngated(&list[0], kinds[2:])

	if got := list[0].Status.Conditions; len(got) != 0 {
		t.Errorf("all are gated: %v", got)
	}
}
