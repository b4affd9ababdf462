// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// tenant is a namespace with one store, of the namespace's name.
type tenant struct {
	cluster

	// namespaced is the Namespace, managed what the store is composed of.
	namespaced, managed *unstructured.Unstructured
}

func newTenant(t *testing.T, name string) *tenant {
	t.Helper()

	n := &tenant{cluster: newCluster(t, "Store", name), namespaced: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}}
	n.namespace = name

	return n
}

// made is a step that makes the namespace and the store, and waits until that is
// kept.
func (n *tenant) made() scenario.Step {
	return scenario.Step{Title: "A namespace with a store is made", Run: func(ctx context.Context) error {
		for _, file := range []string{"stores.yaml", "malls.yaml", "deletions.yaml"} {
			if err := n.applyFile(ctx, file); err != nil {
				return err
			}
		}

		store := strings.ReplaceAll(storeOf(n.name, n.name, "small"), "namespace: default", "namespace: "+n.name)

		if err := errors.Join(n.Create(ctx, n.namespaced), n.apply(ctx, admin, storeComposition(n.name, "v1", "data")),
			n.apply(ctx, hans, store)); err != nil {
			return err
		}

		if err := scenario.Eventually(ctx, "a small store that is kept", all(n.settled, n.kept, n.outside("data"))); err != nil {
			return err
		}

		live, err := n.parts(ctx, objectKind())
		n.managed = live["data"]

		return err
	}}
}

// deleted deletes the namespace as a user.
func (n *tenant) deleted(ctx context.Context, user string) error {
	return n.remove(ctx, user, n.namespaced, metav1.DeletePropagationBackground)
}

// waits checks that the namespace is being deleted, and says what keeps it.
func (n *tenant) waits(words ...string) check {
	return func(ctx context.Context) error {
		u := n.namespaced.DeepCopy()
		if err := n.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}

		text := fmt.Sprint(u.Object["status"], u.GetAnnotations())
		if !resource.Deleting(u) || !mentions(text, words...) {
			return fmt.Errorf("deleting is %t, and it says %s, not %q: %w", resource.Deleting(u), text, words, world.ErrOther)
		}

		return nil
	}
}

// untouched checks that nothing is deleted but the namespace, and that the gate is
// closed.
func (n *tenant) untouched(ctx context.Context) error {
	xr, err := n.xr(ctx)
	if err == nil && resource.Deleting(xr) {
		err = fmt.Errorf("the store is being deleted: %w", world.ErrOther)
	}

	return errors.Join(err, n.shows("size", "small", "data")(ctx))
}

// over checks that the namespace is gone.
func (n *tenant) over(ctx context.Context) error {
	err := n.Get(ctx, client.ObjectKeyFromObject(n.namespaced), n.namespaced.DeepCopy())
	if err == nil {
		err = world.ErrOther
	}

	return client.IgnoreNotFound(err)
}

// lost checks that the external object is gone.
func (n *tenant) lost(ctx context.Context) error {
	_, err := n.configMap(ctx, n.name+"-data")
	if err == nil {
		err = fmt.Errorf("the external object is still there: %w", world.ErrOther)
	}

	return client.IgnoreNotFound(err)
}

func TestANamespaceThatNobodyMayDeleteWaits(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	n := newTenant(t, "waiting")
	reason := `without permission to delete Store "waiting"`

	n.play(t, []scenario.Step{
		n.made(),
		{Title: "Anna deletes it: nothing goes, and that is said, with her name", Run: func(ctx context.Context) error {
			if err := n.deleted(ctx, anna); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "what keeps the namespace", n.waits(reason, "by anna@example.com", v1alpha1.AnnotationTrace)); err != nil {
				return err
			}

			return still(ctx, n.untouched)
		}},
		{Title: "Deleting the namespace again grants nothing, whoever does so", Run: func(ctx context.Context) error {
			return errors.Join(n.deleted(ctx, hans), still(ctx, all(n.untouched, n.waits(reason))))
		}},
		{Title: "Hans, who may, deletes the store: all of it goes", Run: func(ctx context.Context) error {
			xr, err := n.xr(ctx)
			if err != nil {
				return err
			}

			if err := n.remove(ctx, hans, xr, metav1.DeletePropagationBackground); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of the namespace", all(n.over, n.lost))
		}},
	})
}

func TestANamespaceIsLeftWithoutWhatItStandsFor(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	n := newTenant(t, "leaving")

	n.play(t, []scenario.Step{
		n.made(),
		{Title: "Anna deletes the namespace and the store: the managed resource stays", Run: func(ctx context.Context) error {
			xr, err := n.xr(ctx)
			if err != nil {
				return err
			}

			if err := errors.Join(n.deleted(ctx, anna), n.remove(ctx, anna, xr, metav1.DeletePropagationBackground)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the end of the store alone", all(n.ended, n.waits("gate is not open for Delete"))); err != nil {
				return err
			}

			return still(ctx, all(n.outside("data"), n.waits()))
		}},
		{Title: "Released, it goes with the namespace, and the external object stays", Run: func(ctx context.Context) error {
			if _, err := kausality(ctx, anna, "release", "--orphan", "-n", n.name,
				"object.kubernetes.m.crossplane.io/"+n.managed.GetName()); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the end of the namespace", n.over); err != nil {
				return err
			}

			return n.outside("data")(ctx)
		}},
	})
}
