// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// claimed is a Claim of the example, with what follows from it.
type claimed struct {
	cluster
}

// newClaimed has hans make a Claim of a name, with what the example with a ticket has for Claims.
func newClaimed(t *testing.T, name string) claimed {
	t.Helper()

	c := claimed{newCluster(t, "DatabaseClaim", name)}

	for _, file := range []string{"xrd.yaml", "composition.yaml", "policies.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", "claim-with-ticket", file))
		if err != nil {
			t.Fatal(err)
		}

		if err := c.apply(t.Context(), admin, string(text)); err != nil {
			t.Fatal(err)
		}
	}

	if err := c.apply(t.Context(), hans, fmt.Sprintf(`{apiVersion: example.org/v1alpha1, kind: DatabaseClaim,
		metadata: {name: %s, namespace: default, annotations: {jira: INFRA-1}}, spec: {size: small, engine: postgres}}`, name)); err != nil {
		t.Fatal(err)
	}

	return c
}

func (c claimed) claim(ctx context.Context) (*unstructured.Unstructured, error) {
	return c.get(ctx, schema.GroupVersionKind{Group: "example.org", Version: "v1alpha1", Kind: "DatabaseClaim"}, c.name)
}

// below reads the XR and its managed resource.
func (c claimed) below(ctx context.Context) (xr, managed *unstructured.Unstructured, err error) {
	claim, err := c.claim(ctx)
	if err != nil {
		return nil, nil, err
	}

	xr = &unstructured.Unstructured{}
	xr.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.org", Version: "v1alpha1", Kind: "XDatabase"})

	if err := c.Get(ctx, client.ObjectKey{Name: resource.String(claim.Object, "spec", "resourceRef", "name")}, xr); err != nil {
		return nil, nil, err
	}

	for _, ref := range resource.Composed(xr) {
		managed = &unstructured.Unstructured{}
		managed.SetGroupVersionKind(ref.GroupVersionKind())

		return xr, managed, c.Get(ctx, client.ObjectKey{Name: ref.Name}, managed)
	}

	return xr, nil, fmt.Errorf("XR %q is made of nothing: %w", xr.GetName(), world.ErrOther)
}

// ready checks that all is quiet: the XR ready and kept, the gate closed.
func (c claimed) ready(ctx context.Context) error {
	xr, managed, err := c.below(ctx)
	if err != nil {
		return err
	}

	rec, err := allowance.ParseGate(managed)
	if err != nil || rec == nil || rec.State != "Closed" || !resource.Ready(xr) || len(xr.GetFinalizers()) < 2 {
		return fmt.Errorf("gate %+v, ready %t, finalizers %v (%w): %w", rec, resource.Ready(xr), xr.GetFinalizers(), err, world.ErrOther)
	}

	return nil
}

// builtUp checks that Claim and XR were seen ready: that from now on each change is asked about.
func (c claimed) builtUp(ctx context.Context) error {
	claim, err := c.claim(ctx)
	if err != nil {
		return err
	}

	xr, _, err := c.below(ctx)
	if err != nil {
		return err
	}

	for _, u := range []*unstructured.Unstructured{claim, xr} {
		if !fixture.Initialized(u) {
			return fmt.Errorf("%s %q is being built up: %w", u.GetKind(), u.GetName(), world.ErrOther)
		}
	}

	return nil
}

func TestAClaimGoesWithItsDatabase(t *testing.T) {
	t.Parallel()

	newClaimed(t, "old-database").goes(t, metav1.DeletePropagationBackground)
}

func TestAClaimThatWaitsForItsDatabaseGoesWithIt(t *testing.T) {
	world.Long(t)
	t.Parallel()

	newClaimed(t, "older-database").goes(t, metav1.DeletePropagationForeground)
}

// goes has hans delete the Claim, once its database is there, and waits until nothing is left of either.
func (c claimed) goes(t *testing.T, how metav1.DeletionPropagation) {
	t.Helper()

	ctx := t.Context()

	drawn.Lock()
	defer drawn.Unlock()

	if err := c.applyFile(ctx, "claim-deletion.yaml"); err != nil {
		t.Fatal(err)
	}

	defer func() {
		for _, name := range []string{"claim-deletion", "xdatabase-deletion"} {
			p := &unstructured.Unstructured{}
			p.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("AllowancePolicy"))
			p.SetName(name)

			if err := c.Delete(context.WithoutCancel(ctx), p); err != nil {
				t.Error(err)
			}
		}
	}()

	if err := scenario.Eventually(ctx, "a database", c.ready); err != nil {
		t.Fatal(err)
	}

	xr, managed, err := c.below(ctx)
	if err != nil {
		t.Fatal(err)
	}

	claim, err := c.claim(ctx)
	if err != nil {
		t.Fatal(err)
	}

	if err := c.remove(ctx, hans, claim, how); err != nil {
		t.Fatal(err)
	}

	outside := &unstructured.Unstructured{}
	outside.SetAPIVersion("v1")
	outside.SetKind("ConfigMap")
	outside.SetNamespace(namespace)
	outside.SetName(xr.GetName())

	if err := scenario.Eventually(ctx, "the end of the database",
		all(c.missing(claim), c.missing(xr), c.missing(managed), c.missing(outside))); err != nil {
		t.Fatal(err)
	}
}

// TestANewClaimServesNoOldXR has a Claim go by force, and its XR stay. A new Claim of its name has an XR of its own, and who may
// change that changes nothing of the old one.
func TestANewClaimServesNoOldXR(t *testing.T) {
	t.Parallel()

	c, ctx := newClaimed(t, "twice"), t.Context()
	if err := scenario.Eventually(ctx, "a database", all(c.ready, c.builtUp)); err != nil {
		t.Fatal(err)
	}

	old, _, err := c.below(ctx)
	if err != nil {
		t.Fatal(err)
	}

	claim, err := c.claim(ctx)
	if err != nil {
		t.Fatal(err)
	}

	// Crossplane does not see a Claim that is paused go.
	if err := c.Patch(ctx, claim, world.Merge(`{"metadata": {"annotations": {"crossplane.io/paused": "true"}}}`)); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a paused Claim", func(ctx context.Context) error {
		live, err := c.claim(ctx)
		if synced, _ := resource.ConditionOf(live, resource.ConditionSynced); err != nil || synced.Reason != "ReconcilePaused" {
			return fmt.Errorf("Synced is %q: %w", synced.Reason, errors.Join(err, world.ErrOther))
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if err := errors.Join(c.remove(ctx, admin, claim, metav1.DeletePropagationBackground),
		client.IgnoreNotFound(c.Patch(ctx, claim.DeepCopy(), world.Merge(`{"metadata": {"finalizers": null}}`)))); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "no Claim", c.missing(claim)); err != nil {
		t.Fatal(err)
	}

	asked := func(size string) error {
		return c.apply(ctx, hans, fmt.Sprintf(`{apiVersion: example.org/v1alpha1, kind: DatabaseClaim,
			metadata: {name: twice, namespace: default, annotations: {jira: INFRA-2}}, spec: {size: %s, engine: postgres}}`, size))
	}

	if err := asked("small"); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "another database", all(c.ready, c.builtUp)); err != nil {
		t.Fatal(err)
	}

	one, _, err := c.below(ctx)
	if err != nil || one.GetUID() == old.GetUID() {
		t.Fatalf("the new Claim has XR %q (%v)", one.GetName(), err)
	}

	if err := c.Get(ctx, client.ObjectKeyFromObject(old), old); err != nil || resource.Deleting(old) {
		t.Fatalf("the old XR is being deleted (%v)", err)
	}

	sized := func(xr *unstructured.Unstructured, size string) check {
		return func(ctx context.Context) error {
			out, err := c.configMap(ctx, xr.GetName())
			if got := resource.String(out.Object, "data", "size"); err != nil || got != size {
				return fmt.Errorf("%s is %q outside, want %q: %w", xr.GetName(), got, size, errors.Join(err, world.ErrOther))
			}

			return nil
		}
	}

	if err := asked("large"); err != nil {
		t.Fatal(err)
	}

	// Crossplane itself would not.
	if err := controller(t, annaName).Patch(ctx, old, world.Merge(`{"spec": {"size": "large"}}`)); err != nil && !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a large database", sized(one, "large")); err != nil {
		t.Fatal(err)
	}

	if err := still(ctx, sized(old, "small")); err != nil {
		t.Error(err)
	}
}
