// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package removal_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// database is a Claim, with what follows from it.
type database struct {
	*cluster

	claim *unstructured.Unstructured
}

// database has hans ask for one, and waits until it is there with its gate closed.
func (c *cluster) database(t *testing.T, name string) database {
	t.Helper()

	d := database{cluster: c, claim: world.Prototype(schema.GroupVersionKind{Group: "example.org", Version: "v1alpha1", Kind: "DatabaseClaim"})}
	d.claim.SetNamespace(shop)
	d.claim.SetName(name)
	d.claim.SetAnnotations(map[string]string{"jira": "INFRA-1"})
	d.claim.Object["spec"] = map[string]any{"size": "small", "engine": "postgres"}

	world.Eventually(t, "asking for "+name, func(ctx context.Context) error { return c.hans.Create(ctx, d.claim.DeepCopy()) })
	world.Eventually(t, "a gated database "+name, func(ctx context.Context) error { return d.gated(ctx, "small") })

	return d
}

// gated checks that a database has a size, and a closed gate.
func (d database) gated(ctx context.Context, size string) error {
	managed, err := d.managed(ctx)
	if err != nil {
		return err
	}

	rec, err := allowance.ParseGate(managed)
	if err != nil || rec == nil || rec.State != v1alpha1.GateClosed || !slices.Contains(managed.GetFinalizers(), v1alpha1.Finalizer) {
		return fmt.Errorf("gate %+v, %w, finalizers %v: %w", rec, err, managed.GetFinalizers(), world.ErrOther)
	}

	return d.outside(ctx, size)
}

// resize has hans change the size, without a ticket.
func (d database) resize(ctx context.Context, size string) error {
	return d.hans.Patch(ctx, d.claim.DeepCopy(),
		world.Merge(`{"metadata": {"annotations": {"jira": null}}, "spec": {"size": "`+size+`"}}`))
}

// xr reads the composite resource.
func (d database) xr(ctx context.Context) (*unstructured.Unstructured, error) {
	live := d.claim.DeepCopy()
	if err := d.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return nil, err
	}

	xr := world.Prototype(schema.GroupVersionKind{Group: "example.org", Version: "v1alpha1", Kind: "XDatabase"})

	return xr, d.Get(ctx, client.ObjectKey{Name: resource.String(live.Object, "spec", "resourceRef", "name")}, xr)
}

// managed reads the managed resource.
func (d database) managed(ctx context.Context) (*unstructured.Unstructured, error) {
	xr, err := d.xr(ctx)
	if err != nil {
		return nil, err
	}

	for _, ref := range resource.Composed(xr) {
		u := world.Prototype(ref.GroupVersionKind())

		return u, d.Get(ctx, client.ObjectKey{Name: ref.Name}, u)
	}

	return nil, fmt.Errorf("XR %q is made of nothing: %w", xr.GetName(), world.ErrOther)
}

// external reads the external object.
func (d database) external(ctx context.Context) (*unstructured.Unstructured, error) {
	xr, err := d.xr(ctx)
	if err != nil {
		return nil, err
	}

	u := world.Prototype(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})

	return u, d.Get(ctx, client.ObjectKey{Namespace: shop, Name: xr.GetName()}, u)
}

// outside checks the size of the external object.
func (d database) outside(ctx context.Context, size string) error {
	u, err := d.external(ctx)
	if err != nil {
		return err
	}

	if got := resource.String(u.Object, "data", "size"); got != size {
		return fmt.Errorf("%s is %s outside, want %s: %w", d.claim.GetName(), got, size, world.ErrOther)
	}

	return nil
}

// wanted checks the size that the managed resource asks its provider for, and
// that the provider has seen it.
func (d database) wanted(ctx context.Context, size string) error {
	u, err := d.managed(ctx)
	if err != nil {
		return err
	}

	synced, _ := resource.ConditionOf(u, resource.ConditionSynced)
	got := resource.String(u.Object, "spec", "forProvider", "manifest", "data", "size")

	if got != size || synced.ObservedGeneration != u.GetGeneration() {
		return fmt.Errorf("%s is to be %s, want %s; Synced: %+v: %w", d.claim.GetName(), got, size, synced, world.ErrOther)
	}

	return nil
}

// policies checks the management policies.
func (d database) policies(ctx context.Context, want ...string) error {
	u, err := d.managed(ctx)
	if err != nil {
		return err
	}

	if got := resource.Strings(u.Object, "spec", "managementPolicies"); !slices.Equal(got, want) {
		return fmt.Errorf("management policies of %s: %v, want %v: %w", d.claim.GetName(), got, want, world.ErrOther)
	}

	return nil
}

// end deletes Claims, and waits until all of them is gone.
func (c *cluster) end(t *testing.T, list ...database) {
	t.Helper()

	var parts []*unstructured.Unstructured

	for _, d := range list {
		for _, read := range []func(context.Context) (*unstructured.Unstructured, error){d.xr, d.managed, d.external} {
			u, err := read(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			parts = append(parts, u)
		}

		if err := d.hans.Delete(t.Context(), d.claim.DeepCopy()); err != nil {
			t.Fatal(err)
		}

		parts = append(parts, d.claim)
	}

	world.Eventually(t, "the end of databases", func(ctx context.Context) error {
		for _, u := range parts {
			err := c.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
			if err == nil {
				err = fmt.Errorf("%s %q is still there: %w", u.GetKind(), u.GetName(), world.ErrOther)
			}

			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}

		return nil
	})
}
