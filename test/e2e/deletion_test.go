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
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// remove deletes an object as a user.
func (c cluster) remove(ctx context.Context, user string, u *unstructured.Unstructured, how metav1.DeletionPropagation) error {
	as, err := c.as(user)
	if err != nil {
		return err
	}

	return as.Delete(ctx, u, client.PropagationPolicy(how))
}

// ended checks that the composite resource is gone.
func (c cluster) ended(ctx context.Context) error {
	u, err := c.xr(ctx)
	if err == nil {
		return fmt.Errorf("%s %q is still there, with finalizers %v: %w", c.kind.Kind, c.name, u.GetFinalizers(), world.ErrOther)
	}

	return client.IgnoreNotFound(err)
}

// outside checks that external objects are there, whatever became of what
// stands for them.
func (c cluster) outside(names ...string) check {
	return func(ctx context.Context) error {
		for _, name := range names {
			if _, err := c.configMap(ctx, c.name+"-"+name); err != nil {
				return err
			}
		}

		return nil
	}
}

// told checks that an event of a reason was recorded on an object.
func (c cluster) told(u *unstructured.Unstructured, reason string) check {
	return func(ctx context.Context) error {
		scheme := runtime.NewScheme()
		if err := eventsv1.AddToScheme(scheme); err != nil {
			return err
		}

		reader, err := client.New(running.Config(), client.Options{Scheme: scheme})
		if err != nil {
			return err
		}

		list := &eventsv1.EventList{}
		if err := reader.List(ctx, list, client.InNamespace(u.GetNamespace())); err != nil {
			return err
		}

		for _, e := range list.Items {
			if e.Regarding.UID == u.GetUID() && e.Reason == reason {
				return nil
			}
		}

		return fmt.Errorf("no event %s on %s %q: %w", reason, u.GetKind(), u.GetName(), world.ErrOther)
	}
}

// store is a step that makes a store with one managed resource, and waits until
// it is settled and kept.
func (c cluster) store(composition string) scenario.Step {
	return scenario.Step{Title: "A store is made", Run: func(ctx context.Context) error {
		for _, file := range []string{"stores.yaml", "malls.yaml", "deletions.yaml"} {
			if err := c.applyFile(ctx, file); err != nil {
				return err
			}
		}

		if err := c.apply(ctx, admin, storeComposition(composition, "v1", "data")); err != nil {
			return err
		}

		if err := c.apply(ctx, hans, storeOf(composition, c.name, "small")); err != nil {
			return err
		}

		return scenario.Eventually(ctx, "a small store that is kept", all(c.shows("size", "small", "data"), c.settled, c.kept))
	}}
}

func (c cluster) kept(ctx context.Context) error {
	u, err := c.xr(ctx)
	if err == nil && !strings.Contains(strings.Join(u.GetFinalizers(), " "), v1alpha1.Finalizer) {
		err = fmt.Errorf("the finalizers are %v: %w", u.GetFinalizers(), world.ErrOther)
	}

	return err
}

func TestAnAllowedDeletionEndsWithNothingLeft(t *testing.T) {
	world.Long(t)
	t.Parallel()

	for name, how := range map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := newCluster(t, "Store", "closing-"+name)

			c.play(t, []scenario.Step{
				c.store("closings-" + name),
				{Title: "It goes, with what it stands for", Run: func(ctx context.Context) error {
					xr, err := c.xr(ctx)
					if err != nil {
						return err
					}

					if err := c.remove(ctx, hans, xr, how); err != nil {
						return err
					}

					return scenario.Eventually(ctx, "the end of the store", all(c.gone("data"), c.ended))
				}},
			})
		})
	}
}

func TestADeletionThatNobodyMayAskForLeavesTheExternalObject(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Store", "squatted")

	var left *unstructured.Unstructured

	c.play(t, []scenario.Step{
		c.store("squats"),
		{Title: "Anna deletes it: what it stands for stays, and that is said", Run: func(ctx context.Context) error {
			parts, err := c.parts(ctx, objectKind())
			if err != nil {
				return err
			}

			left = parts["data"]

			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			if err := c.remove(ctx, anna, xr, metav1.DeletePropagationBackground); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the end of the store alone", all(c.ended, c.told(left, "KausalityManagedResourceOrphaned"))); err != nil {
				return err
			}

			return still(ctx, all(c.outside("data"), func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(left), left) }))
		}},
		{Title: "Hans, who may, deletes what is left", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "the end of the managed resource", func(ctx context.Context) error {
				err := c.remove(ctx, hans, left, metav1.DeletePropagationBackground)
				if err != nil && !apierrors.IsNotFound(err) {
					return err // Refused until the gate is open, which the first attempt asks for.
				}

				return c.gone("data")(ctx)
			})
		}},
	})
}

func TestWhoOrphansKeepsTheExternalObject(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Store", "orphaned")

	c.play(t, []scenario.Step{
		c.store("orphans"),
		{Title: "The store goes, and what it is made of stays", Run: func(ctx context.Context) error {
			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			parts, err := c.parts(ctx, objectKind())
			if err != nil {
				return err
			}

			// Crossplane writes the owner again where it is composing right now.
			if err := c.setPaused(ctx, xr, `"true"`); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a paused store", c.paused); err != nil {
				return err
			}

			if err := c.remove(ctx, hans, xr, metav1.DeletePropagationOrphan); err != nil {
				return err
			}

			free := func(ctx context.Context) error {
				u := parts["data"].DeepCopy()
				if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
					return err
				}

				if _, owned := resource.ParentOf(u); owned || resource.Deleting(u) {
					return fmt.Errorf("it is owned or being deleted: %w", world.ErrOther)
				}

				return nil
			}

			if err := scenario.Eventually(ctx, "a managed resource without an owner", free); err != nil {
				return err
			}

			if err := c.setPaused(ctx, xr, "null"); err != nil {
				return err
			}

			return errors.Join(scenario.Eventually(ctx, "the end of the store", c.ended), still(ctx, all(free, c.outside("data"))))
		}},
	})
}

// paused checks that Crossplane has ended what it was at, and leaves the composite
// resource alone.
func (c cluster) paused(ctx context.Context) error {
	xr, err := c.xr(ctx)
	if err != nil {
		return err
	}

	if synced, _ := resource.ConditionOf(xr, "Synced"); synced.Reason != "ReconcilePaused" {
		return fmt.Errorf("Synced is %q: %w", synced.Reason, world.ErrOther)
	}

	return nil
}

func TestADeletionPassesLevelsOfCompositeResources(t *testing.T) {
	world.Long(t)
	t.Parallel()

	for name, tc := range map[string]struct {
		kind  string
		below map[string]string // Kinds of the XRs between it and what has a gate, with what their names end in.
		how   metav1.DeletionPropagation
	}{
		"north": {"Mall", nil, metav1.DeletePropagationBackground},
		"south": {"Mall", nil, metav1.DeletePropagationForeground},
		"east":  {"Town", map[string]string{"Mall": "-mall"}, metav1.DeletePropagationBackground},
		"west":  {"Town", map[string]string{"Mall": "-mall"}, metav1.DeletePropagationForeground},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := newCluster(t, tc.kind, name)
			store := c.of("Store", name+tc.below["Mall"]+"-store")
			kept, ended := all(store.shows("size", "small", "data"), store.settled, store.kept, c.settled, c.kept), all(store.gone("data"), store.ended, c.ended)

			for kind, suffix := range tc.below {
				between := c.of(kind, name+suffix)
				kept, ended = all(kept, between.settled, between.kept), all(ended, between.ended)
			}

			c.play(t, []scenario.Step{
				{Title: "It is made", Run: func(ctx context.Context) error {
					for _, file := range []string{"stores.yaml", "malls.yaml", "towns.yaml", "deletions.yaml"} {
						if err := c.applyFile(ctx, file); err != nil {
							return err
						}
					}

					if err := c.apply(ctx, admin, storeComposition("mall-stores", "v1", "data")); err != nil {
						return err
					}

					if err := c.apply(ctx, hans, sized(tc.kind, name, "small")); err != nil {
						return err
					}

					return scenario.Eventually(ctx, "a small one that is kept", kept)
				}},
				{Title: "It goes, to the end", Run: func(ctx context.Context) error {
					if err := c.removed(hans, tc.how)(ctx); err != nil {
						return err
					}

					return scenario.Eventually(ctx, "its end", ended)
				}},
			})
		})
	}
}

func TestANamespaceGoesWithWhatItHolds(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Store", "moved")
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "moving", "labels": map[string]any{"test": "deletion"}},
	}}
	in := func(text string) string { return strings.ReplaceAll(text, "namespace: default", "namespace: moving") }

	c.play(t, []scenario.Step{
		{Title: "A namespace with a store is made", Run: func(ctx context.Context) error {
			for _, file := range []string{"stores.yaml", "malls.yaml", "deletions.yaml"} {
				if err := c.applyFile(ctx, file); err != nil {
					return err
				}
			}

			if err := errors.Join(c.Create(ctx, ns.DeepCopy()), c.apply(ctx, admin, storeComposition("movings", "v1", "data")),
				c.apply(ctx, hans, in(storeOf("movings", "moved", "small")))); err != nil {
				return err
			}

			c.namespace = "moving"

			return scenario.Eventually(ctx, "a small store that is kept", all(c.settled, c.kept, c.outside("data")))
		}},
		{Title: "It goes, with what the store stands for", Run: func(ctx context.Context) error {
			if err := c.remove(ctx, hans, ns, metav1.DeletePropagationBackground); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of the namespace", all(c.gone("data"), c.ended, func(ctx context.Context) error {
				err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns.DeepCopy())
				if err == nil {
					err = world.ErrOther
				}

				return client.IgnoreNotFound(err)
			}))
		}},
	})
}

// TestANamespaceTakesLevelsOfCompositeResourcesFromAbove has a namespace hold a town, a mall and a store, of which its controller takes
// any first.
func TestANamespaceTakesLevelsOfCompositeResourcesFromAbove(t *testing.T) {
	world.Long(t)
	t.Parallel()

	for name, granted := range map[string]bool{"roving": true, "settling": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := newCluster(t, "Town", name)
			mall, store := c.of("Mall", name+"-mall"), c.of("Store", name+"-mall-store")
			ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}

			if granted {
				ns.SetLabels(map[string]string{"test": "deletion"})
			}

			for _, one := range []*cluster{&c, &mall, &store} {
				one.namespace = name
			}

			there := all(c.kept, mall.kept, store.kept, store.outside("data"), c.isStaying, mall.isStaying, store.isStaying)

			c.play(t, []scenario.Step{
				{Title: "A namespace with a town is made", Run: func(ctx context.Context) error {
					for _, file := range []string{"stores.yaml", "malls.yaml", "towns.yaml", "deletions.yaml"} {
						if err := c.applyFile(ctx, file); err != nil {
							return err
						}
					}

					if err := errors.Join(c.Create(ctx, ns.DeepCopy()), c.apply(ctx, admin, storeComposition("mall-stores", "v1", "data")),
						c.apply(ctx, hans, strings.ReplaceAll(sized("Town", name, "small"), "namespace: default", "namespace: "+name))); err != nil {
						return err
					}

					return scenario.Eventually(ctx, "a small town that is kept", all(store.settled, mall.settled, c.settled, there))
				}},
				{Title: "It is deleted", Run: func(ctx context.Context) error {
					if err := c.remove(ctx, hans, ns, metav1.DeletePropagationBackground); err != nil || granted {
						return err
					}

					if err := rests(ctx, "what nobody may delete with it", there); err != nil {
						return err
					}

					return c.removed(hans, metav1.DeletePropagationBackground)(ctx)
				}},
				{Title: "It goes, with what the store stands for", Run: func(ctx context.Context) error {
					return scenario.Eventually(ctx, "the end of the namespace", all(store.noOutside("data"), store.ended, mall.ended, c.ended, func(ctx context.Context) error {
						err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns.DeepCopy())
						if err == nil {
							err = world.ErrOther
						}

						return client.IgnoreNotFound(err)
					}))
				}},
			})
		})
	}
}

// isStaying checks that the composite resource is not being deleted.
func (c cluster) isStaying(ctx context.Context) error {
	u, err := c.xr(ctx)
	if err == nil && resource.Deleting(u) {
		err = fmt.Errorf("%s %q is being deleted: %w", c.kind.Kind, c.name, world.ErrOther)
	}

	return err
}

// TestWhatIsKeptIsReleasedAfterARestart does not run beside others, for which the
// manager would be away too. No policy names the kind that is kept.
func TestWhatIsKeptIsReleasedAfterARestart(t *testing.T) {
	world.Long(t)

	c := newCluster(t, "Kiosk", "kept")
	kiosk := strings.NewReplacer("Store", "Kiosk", "stores", "kiosks")

	c.play(t, []scenario.Step{
		{Title: "A kiosk is made, and kept", Run: func(ctx context.Context) error {
			text, err := os.ReadFile(filepath.Join("testdata", "stores.yaml"))
			if err != nil {
				return err
			}

			xrd, _, _ := strings.Cut(string(text), "---")

			if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, kiosk.Replace(xrd)),
				c.apply(ctx, admin, kiosk.Replace(storeComposition("kept", "v1", "data"))),
				c.apply(ctx, hans, kiosk.Replace(storeOf("kept", "kept", "small")))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small kiosk that is kept", all(c.shows("size", "small", "data"), c.settled, c.kept))
		}},
		{Title: "It goes after the manager was restarted", Run: func(ctx context.Context) error {
			manager := running.Process("kausality-manager")
			if err := errors.Join(manager.Kill(), manager.Restart(ctx)); err != nil {
				return err
			}

			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "its deletion", func(ctx context.Context) error {
				return client.IgnoreNotFound(c.remove(ctx, hans, xr, metav1.DeletePropagationBackground))
			}); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of the kiosk", c.ended)
		}},
	})
}
