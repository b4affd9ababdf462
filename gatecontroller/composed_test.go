// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

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

	vaults := servedKind{gvk: schema.GroupVersionKind{Group: "old.example.org", Kind: "Vault"}, resource: "vaults", managed: true}
	guard := hooks{}.guards([]servedKind{vaults}, nil)[1].policy
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
