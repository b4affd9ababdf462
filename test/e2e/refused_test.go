// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// refusal is somebody else's, of deleting one store.
const refusal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: test-refused}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [shop.example.org], apiVersions: ["*"], resources: [stores], operations: [DELETE]}]}
  matchConditions: [{name: one, expression: "oldObject.metadata.name == 'refused'"}]
  validations: [{expression: "false", message: "not today"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: test-refused}
spec: {policyName: test-refused, validationActions: [Deny]}
`

// refuses checks whether somebody refuses to delete the store, without doing so.
func (c cluster) refuses(want bool) check {
	return func(ctx context.Context) error {
		xr, err := c.xr(ctx)
		if err != nil {
			return err
		}

		err = c.Delete(ctx, xr, client.DryRunAll)
		if refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err); refused != want {
			return fmt.Errorf("refused is %t (%w)", refused, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// strip has a user take our finalizer and all references off the store.
func (c cluster) strip(ctx context.Context, user string) error {
	as, err := c.as(user)
	if err != nil {
		return err
	}

	return scenario.Eventually(ctx, "a patch of the store", func(ctx context.Context) error {
		xr, err := c.xr(ctx)
		if err != nil {
			return err
		}

		refs := len(resource.Composed(xr))

		xr.SetFinalizers(slices.DeleteFunc(xr.GetFinalizers(), func(f string) bool { return f == v1alpha1.Finalizer }))

		if err := unstructured.SetNestedSlice(xr.Object, []any{}, "spec", "crossplane", "resourceRefs"); err != nil {
			return err
		}

		if err := as.Update(ctx, xr); err != nil {
			return err
		}

		if got := len(resource.Composed(xr)); got != refs || !slices.Contains(xr.GetFinalizers(), v1alpha1.Finalizer) {
			return fmt.Errorf("%d of %d references, finalizers %v: %w", got, refs, xr.GetFinalizers(), world.ErrOther)
		}

		return nil
	})
}

func TestADeletionThatIsRefusedGrantsNothingToAnybodyElse(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Store", "refused")

	var left *unstructured.Unstructured

	c.play(t, []scenario.Step{
		c.store("refusals"),
		{Title: "Nobody takes our finalizer and Crossplane's references off it", Run: func(ctx context.Context) error {
			return c.strip(ctx, anna)
		}},
		{Title: "Somebody else refuses hans, who may, to delete it", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, refusal); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the refusal in force", c.refuses(true)); err != nil {
				return err
			}

			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			if err := c.remove(ctx, hans, xr, metav1.DeletePropagationBackground); err == nil {
				return fmt.Errorf("it was deleted: %w", world.ErrOther)
			}

			if xr, err = c.xr(ctx); err != nil {
				return err
			}

			if list, err := allowance.Parse(xr); err != nil || !slices.ContainsFunc(list, allowance.ByDeletion) {
				return fmt.Errorf("it carries %+v, no grant (%w)", list, errors.Join(err, world.ErrOther))
			}

			return nil
		}},
		{Title: "Anna, who may not, deletes it: what it stands for stays", Run: func(ctx context.Context) error {
			live, err := c.parts(ctx, objectKind())
			if err != nil {
				return err
			}

			left = live["data"]

			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			binding := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
				"metadata": map[string]any{"name": "test-refused"},
			}}

			if err := errors.Join(c.Delete(ctx, binding), scenario.Eventually(ctx, "no refusal", c.refuses(false)),
				c.remove(ctx, anna, xr, metav1.DeletePropagationBackground)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the end of the store alone", all(c.ended, c.told(left, "KausalityManagedResourceOrphaned"))); err != nil {
				return err
			}

			return still(ctx, all(c.outside("data"), func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(left), left) }))
		}},
	})
}
