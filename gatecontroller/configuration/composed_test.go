// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestWithoutGatesOnlyWhatIsNamedIsFollowed(t *testing.T) {
	c := &Reconciler{Composed: &discovery.Kinds{}}
	xr := fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: XShop, spec: {resourceRefs: []}, status: {conditions: [{type: Kausality, status: 'True'}]}}")
	named := []kind.Served{{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}}}

	gated, watched, err := c.findGated(t.Context(), append([]kind.Served{{GVK: xr.GroupVersionKind()}}, named...), named)
	if err != nil || len(gated) != 1 || len(watched) != 1 || !c.composedKnown {
		t.Errorf("follow: %v, %v, %v, followed %v", gated, watched, err, c.composedKnown)
	}

	if !c.Composed.Governs(fixture.Parse(t, "{apiVersion: apps/v1, kind: Deployment}")) || c.Composed.Governs(fixture.Parse(t, "{apiVersion: v1, kind: Secret}")) {
		t.Error("what is named is our business, and nothing else")
	}
}

func TestGuardsFromBeforeShowWhatToGoOnGuarding(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	vaults := kind.Served{GVK: schema.GroupVersionKind{Group: "old.example.org", Kind: "Vault"}, Resource: "vaults", Managed: true}
	guard := admission.Options{}.Guards([]kind.Served{vaults}, nil)[1].Policy
	c := &Reconciler{Resolver: &discovery.Resolver{Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(guard).Build()}}

	got, err := c.guardedBefore(t.Context())
	if err != nil || len(got) != 1 || !got[schema.GroupResource{Group: "old.example.org", Resource: "vaults"}] {
		t.Errorf("guarded before: %v, %v", got, err)
	}

	c.Resolver.Live = fake.NewClientBuilder().WithScheme(scheme).Build()
	if got, err := c.guardedBefore(t.Context()); err != nil || got == nil || len(got) > 0 {
		t.Errorf("nothing was guarded: %v, %v", got, err)
	}
}
