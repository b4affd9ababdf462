// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// The tests of this file do not run beside others, which use the kind that they
// take away.

// recorded checks that what the managed resource orphaned is recorded,
// and said.
func (a *accident) recorded(ctx context.Context) error {
	u := a.managed
	list := &corev1.SecretList{}

	if err := a.List(ctx, list, client.InNamespace(stack.KausalityNamespace), client.MatchingLabels{
		orphan.Label: orphan.Key(u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()),
	}); err != nil {
		return err
	}

	if len(list.Items) != 1 {
		return fmt.Errorf("%d records of %s %q: %w", len(list.Items), u.GetKind(), u.GetName(), world.ErrOther)
	}

	r, err := orphan.ReadRecord(list.Items[0].Data)
	if err != nil || r.Owner.UID != string(a.xr.GetUID()) || orphan.ExternalName(r.Object) != orphan.ExternalName(u) {
		return fmt.Errorf("the record is %+v (%w): %w", r, err, world.ErrOther)
	}

	return all(a.told(u, "KausalityExternalResourceOrphaned"), counted("external", u.GetKind()))(ctx)
}

// stand is a step that makes a composite resource of one managed resource.
func (a *accident) stand(composition string) scenario.Step {
	return scenario.Step{Title: "A store is made", Run: func(ctx context.Context) error {
		c := a.cluster
		if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, storeComposition(composition, "v1", "data")),
			c.apply(ctx, hans, storeOf(composition, c.name, "small"))); err != nil {
			return err
		}

		waits := func(ctx context.Context) error {
			parts, err := c.parts(ctx, objectKind())
			if err == nil && !slices.Contains(parts["data"].GetFinalizers(), v1alpha1.Finalizer) {
				err = fmt.Errorf("finalizers %v: %w", parts["data"].GetFinalizers(), world.ErrOther)
			}

			return err
		}

		if err := scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", "data"), c.settled, c.kept, waits)); err != nil {
			return err
		}

		xr, xrErr := c.xr(ctx)
		parts, partsErr := c.parts(ctx, objectKind())

		return errors.Join(xrErr, partsErr, a.before(ctx, xr, parts["data"], c.name+"-data"))
	}}
}

// takenBack are the steps after the kind is back: the XR, which was there all
// along, gets its managed resource again, and goes on with it.
func (a *accident) takenBack(composition string) []scenario.Step {
	return []scenario.Step{
		{Title: "What is gone is not made anew", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "a held creation", all(a.says("creation of "), a.untouched))
		}},
		{Title: "It is taken back from the record", Run: func(ctx context.Context) error {
			out, err := kausality(ctx, hans, "adopt", "object.kubernetes.m.crossplane.io/"+a.managed.GetName(), "-n", namespace)
			if err != nil {
				return err
			}

			if !strings.Contains(out, "is created again") {
				return fmt.Errorf("it printed %q: %w", out, world.ErrOther)
			}

			if err := scenario.Eventually(ctx, "a settled store", all(a.hasData, a.shows("size", "small", "data"), a.settled, a.untouched)); err != nil {
				return err
			}

			return errors.Join(still(ctx, all(a.hasData, a.untouched)), rests(ctx, "a settled store", all(a.hasData, a.settled, a.untouched)))
		}},
		{Title: "What is allowed reaches it as before", Run: func(ctx context.Context) error {
			if err := a.apply(ctx, hans, storeOf(composition, a.name, "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large store", all(a.hasData, a.shows("size", "large", "data"), a.settled))
		}},
	}
}

// definition reads a CRD, and puts it back in the end.
func (c cluster) definition(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()

	crd := crdNamed(name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := c.define(context.WithoutCancel(t.Context()), crd); err != nil {
			t.Error(err)
		}
	})

	return crd
}

// define makes a CRD anew, once the old one is gone, and waits until it is in
// force.
func (c cluster) define(ctx context.Context, crd *unstructured.Unstructured) error {
	next := &unstructured.Unstructured{Object: map[string]any{"spec": crd.Object["spec"]}}
	next.SetGroupVersionKind(crd.GroupVersionKind())
	next.SetName(crd.GetName())

	return scenario.Eventually(ctx, "a definition of "+crd.GetName(), func(ctx context.Context) error {
		u := next.DeepCopy()
		if err := client.IgnoreAlreadyExists(c.Create(ctx, u)); err != nil {
			return err
		}

		if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}

		established, _ := resource.ConditionOf(u, "Established")
		if !established.True() || resource.Deleting(u) {
			return fmt.Errorf("CRD %q is not in force: %w", u.GetName(), world.ErrOther)
		}

		return nil
	})
}

func TestAKindDeletedByAccidentWhileKausalityIsDownIsWrittenDown(t *testing.T) {
	world.Long(t)

	c := newCluster(t, "Store", "outlasting")
	a := &accident{cluster: c}
	crd := c.definition(t, "objects.kubernetes.m.crossplane.io")
	manager := running.Process("kausality-manager")

	steps := []scenario.Step{
		a.stand("outlasting"),
		{Title: "The CRD is deleted while the manager is down, and waits", Run: func(ctx context.Context) error {
			if err := errors.Join(manager.Kill(), c.remove(ctx, hans, crd.DeepCopy(), metav1.DeletePropagationBackground)); err != nil {
				return err
			}

			return still(ctx, all(a.untouched, func(ctx context.Context) error {
				return c.Get(ctx, client.ObjectKeyFromObject(a.managed), a.managed.DeepCopy())
			}))
		}},
		{Title: "It goes once the manager is back, which writes down what stays", Run: func(ctx context.Context) error {
			if err := manager.Restart(ctx); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of the kind", all(a.recorded, a.missing(crd), a.untouched))
		}},
		{Title: "The CRD is put back", Run: func(ctx context.Context) error { return c.define(ctx, crd) }},
	}

	c.play(t, slices.Concat(steps, a.takenBack("outlasting")))
}

func TestAProviderRemovedByAccidentCostsNothingOutside(t *testing.T) {
	world.Long(t)

	c := newCluster(t, "Store", "unprovided")
	a := &accident{cluster: c}
	crd := c.definition(t, "objects.kubernetes.m.crossplane.io")
	provider := running.Process("provider-kubernetes")

	t.Cleanup(func() {
		if err := provider.Restart(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})

	steps := []scenario.Step{
		a.stand("unprovided"),
		{Title: "The package is removed: its CRDs and its process go, and the managed resources wait for it", Run: func(ctx context.Context) error {
			pkg, err := c.installed(ctx, crd)
			if err != nil {
				return err
			}

			if err := errors.Join(provider.Kill(), c.remove(ctx, hans, pkg, metav1.DeletePropagationBackground)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a record", all(a.missing(pkg), a.recorded, a.untouched))
		}},
		{Title: "Released without the provider, the managed resource goes, and the kind with it", Run: func(ctx context.Context) error {
			if _, err := kausality(ctx, hans, "release", "object.kubernetes.m.crossplane.io", a.managed.GetName(), "-n", namespace,
				"--orphan"); err == nil || !strings.Contains(err.Error(), "--without-provider") {
				return fmt.Errorf("it does not say how to go on without the provider: %w", errors.Join(err, world.ErrOther))
			}

			// Whatever there is of the kind, also of other tests, waits for the provider.
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(objectKind())

			if err := c.List(ctx, list); err != nil {
				return err
			}

			for _, u := range list.Items {
				if _, err := kausality(ctx, hans, "release", "object.kubernetes.m.crossplane.io", u.GetName(), "-n", u.GetNamespace(),
					"--orphan", "--without-provider"); err != nil {
					return err
				}
			}

			return scenario.Eventually(ctx, "the end of the kind", all(a.missing(crd), a.untouched))
		}},
		{Title: "The provider is installed again", Run: func(ctx context.Context) error {
			return errors.Join(c.define(ctx, crd), provider.Restart(ctx))
		}},
	}

	c.play(t, slices.Concat(steps, a.takenBack("unprovided")))
}

// installed makes the package manager's objects of a provider, and has them own
// a CRD as it does: the revision as the controller, the package beside it.
//
// Source: crossplane internal/controller/pkg/revision, APIEstablisher.create.
func (c cluster) installed(ctx context.Context, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	const image = "stack.invalid/provider-kubernetes:local"

	object := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: kind})
		u.SetName(name)
		u.SetAnnotations(map[string]string{"crossplane.io/paused": "true"}) // Else it pulls the image.

		return u
	}

	pkg := object("Provider", "provider-kubernetes", map[string]any{"package": image, "packagePullPolicy": "Never"})
	if err := c.Create(ctx, pkg); err != nil {
		return nil, err
	}

	revision := object("ProviderRevision", "provider-kubernetes-1", map[string]any{
		"desiredState": "Active", "image": image, "packagePullPolicy": "Never", "revision": int64(1),
	})
	revision.SetLabels(map[string]string{"pkg.crossplane.io/package": pkg.GetName()})
	revision.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(pkg, pkg.GroupVersionKind())})

	if err := c.Create(ctx, revision); err != nil {
		return nil, err
	}

	beside := *metav1.NewControllerRef(pkg, pkg.GroupVersionKind())
	beside.Controller = new(false)

	owned := crd.DeepCopy()
	owned.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(revision, revision.GroupVersionKind()), beside})

	return pkg, c.Patch(ctx, owned, client.MergeFrom(crd))
}
