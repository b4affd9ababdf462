// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// unknown is an annotation of another version.
const unknown = "kausality.io/management-policies-old"

// unknownAlone is a managed resource that somebody makes by hand.
const unknownAlone = "unknown-alone"

// inUse checks its management policies, and what it stands for.
func (c cluster) inUse(policies, color string) check {
	return func(ctx context.Context) error {
		u, err := c.get(ctx, objectKind(), unknownAlone)
		if err != nil {
			return err
		}

		out, err := c.configMap(ctx, unknownAlone)
		if err != nil {
			return err
		}

		got := strings.Join(resource.Strings(u.Object, "spec", "managementPolicies"), ",")
		if is := resource.String(out.Object, "data", "color"); got != policies || is != color {
			return fmt.Errorf("the policies are %q, and it is %s outside, want %q and %s: %w", got, is, policies, color, world.ErrOther)
		}

		return nil
	}
}

// TestAManagedResourceWithAnUnknownAnnotationAloneIsGoverned has one stored past the webhook: nobody knows whether it is of a
// gate.
func TestAManagedResourceWithAnUnknownAnnotationAloneIsGoverned(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	const (
		closed, open = "Observe", "*"
		widened      = `{"spec": {"managementPolicies": ["*"]}}`
	)

	c := newCluster(t, "Store", "unknown")
	manager := world.Impersonate(t, running, "system:serviceaccount:"+stack.KausalityNamespace+":kausality-manager", "system:serviceaccounts")

	as := func(ctx context.Context, do func(client.Client, *unstructured.Unstructured) error) error {
		user, err := c.as(hans)
		if err != nil {
			return err
		}

		u, err := c.get(ctx, objectKind(), unknownAlone)
		if err != nil {
			return err
		}

		return do(user, u)
	}

	c.play(t, []scenario.Step{
		{Title: "Without it its provider does what is asked for", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, storeComposition("unknown", "v1", "data")),
				c.apply(ctx, hans, storeOf("unknown", "unknown", "small")), c.apply(ctx, hans, handmade(unknownAlone, "by: nobody", "small", "red"))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a store, and a free object", all(c.settled, c.inUse(open, "red")))
		}},
		{Title: "With it, it is closed", Run: func(ctx context.Context) error {
			if err := as(ctx, func(_ client.Client, u *unstructured.Unstructured) error {
				return manager.Patch(ctx, u, world.Merge(`{"metadata": {"annotations": {"`+unknown+`": "x"}}}`))
			}); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a closed gate", c.inUse(closed, "red"))
		}},
		{Title: "And guarded: it is neither opened, nor deleted, nor is an edit stored", Run: func(ctx context.Context) error {
			return as(ctx, func(user client.Client, u *unstructured.Unstructured) error {
				if err := user.Patch(ctx, u.DeepCopy(), world.Merge(widened)); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
					return fmt.Errorf("it is opened: %w", errors.Join(err, world.ErrOther))
				}

				if err := user.Delete(ctx, u.DeepCopy()); !apierrors.IsForbidden(err) {
					return fmt.Errorf("it is deleted: %w", errors.Join(err, world.ErrOther))
				}

				if err := c.apply(ctx, hans, handmade(unknownAlone, "by: nobody", "small", "blue")); err != nil {
					return err
				}

				return errors.Join(c.heldRoot(ctx, unknownAlone), still(ctx, c.inUse(closed, "red")))
			})
		}},
		{Title: "The doctor says which command helps", Run: func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, filepath.Join(running.BinDir(), "kubectl-kausality"), "doctor")
			cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(running.Dir(), "kubeconfig"))

			out, _ := cmd.CombinedOutput() // It fails wherever it finds something.

			want := "kubectl annotate Object.kubernetes.m.crossplane.io/" + unknownAlone + " -n default " + unknown + "-"
			if flat := strings.Join(strings.Fields(string(out)), " "); !mentions(flat, want) {
				return fmt.Errorf("it does not say %q, but %s: %w", want, out, world.ErrOther)
			}

			return nil
		}},
		{Title: "After that it is free again", Run: func(ctx context.Context) error {
			if err := as(ctx, func(user client.Client, u *unstructured.Unstructured) error {
				return user.Patch(ctx, u, world.Merge(`{"metadata": {"annotations": {"`+unknown+`": null}}}`), client.FieldOwner("kubectl-annotate"))
			}); err != nil {
				return err
			}

			if err := as(ctx, func(user client.Client, u *unstructured.Unstructured) error {
				return user.Patch(ctx, u, world.Merge(widened))
			}); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, handmade(unknownAlone, "by: nobody", "small", "blue")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a blue object", c.inUse(open, "blue"))
		}},
	})
}
