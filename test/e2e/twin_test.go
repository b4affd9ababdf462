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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// removed deletes the composite resource.
func (c cluster) removed(user string, how metav1.DeletionPropagation) check {
	return func(ctx context.Context) error {
		xr, err := c.xr(ctx)
		if err != nil {
			return err
		}

		return c.remove(ctx, user, xr, how)
	}
}

// released releases a managed resource as its event says.
func (c cluster) released(ctx context.Context, user string, u *unstructured.Unstructured) error {
	_, err := kausality(ctx, user, "release", "object.kubernetes.m.crossplane.io/"+u.GetName(), "-n", u.GetNamespace(), "--orphan")

	return err
}

// TestWhatTwoStandForIsDeletedByNone has two composite resources compose the same ConfigMap, as one that moves from one to the
// other does.
func TestWhatTwoStandForIsDeletedByNone(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Desk", "twin")
	other := c.of("Desk", "twin-x")

	var first, second *unstructured.Unstructured

	shared := string(v1alpha1.EventReasonShared)

	c.play(t, []scenario.Step{
		{Title: "Two desks of one ConfigMap", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "desks.yaml"), c.desk(ctx, "x-red", "default", "small")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a desk", all(c.outsideSize("x-red", "small"), c.gateIs(v1alpha1.GateClosed), c.settled)); err != nil {
				return err
			}

			if err := other.desk(ctx, "red", "default", "small"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "another one", func(ctx context.Context) error {
				var err, err2 error

				first, err = c.part(ctx, objectKind(), "data")
				second, err2 = other.part(ctx, objectKind(), "data")

				return errors.Join(err, err2, other.gateIs(v1alpha1.GateClosed)(ctx), other.settled(ctx))
			})
		}},
		{Title: "The one that made it goes", Run: func(ctx context.Context) error {
			if err := c.removed(hans, metav1.DeletePropagationBackground)(ctx); err != nil {
				return err
			}

			return rests(ctx, "what the other one stands for, and a word about it",
				all(c.outside("x-red"), c.told(first, shared), c.told(second, shared)))
		}},
		{Title: "It is released", Run: func(ctx context.Context) error {
			if err := c.released(ctx, hans, first); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the ConfigMap alone", all(c.ended, c.isGone(first), c.outside("x-red")))
		}},
	})
}

// TestWhatExistedIsNotDeletedWithItsManagedResource has a farm made where its ConfigMap is there already, and deleted by who may.
func TestWhatExistedIsNotDeletedWithItsManagedResource(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Farm", "farm-found")
	c.namespace = ""

	var data *unstructured.Unstructured

	c.play(t, []scenario.Step{
		{Title: "A farm of what others made", Run: func(ctx context.Context) error {
			if err := errors.Join(c.apply(ctx, admin, "{apiVersion: v1, kind: ConfigMap, metadata: {name: farm-found-a, namespace: default}, data: {size: small}}"),
				c.applyFile(ctx, "farms.yaml"), c.farm(ctx)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a farm", all(c.settled, func(ctx context.Context) error {
				var err error
				data, err = c.part(ctx, schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: "Object"}, "data")

				return err
			}))
		}},
		{Title: "It is deleted", Run: func(ctx context.Context) error {
			if err := c.removed(hans, metav1.DeletePropagationBackground)(ctx); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "its end", all(c.ended, c.isGone(data))); err != nil {
				return err
			}

			return rests(ctx, "the ConfigMap, and a record of it", all(c.outside("a"), c.leftBehind("a"),
				c.told(data, string(v1alpha1.EventReasonExternalResourceOrphaned))))
		}},
	})
}

func (c cluster) farm(ctx context.Context) error {
	return c.apply(ctx, hans, "{apiVersion: shop.example.org/v1, kind: Farm, metadata: {name: "+c.name+"}, spec: {size: small}}")
}

// isGone checks that a managed resource is there no more.
func (c cluster) isGone(u *unstructured.Unstructured) check {
	return func(ctx context.Context) error {
		live := u.DeepCopy()

		err := c.Get(ctx, client.ObjectKeyFromObject(u), live)
		if err == nil && live.GetUID() == u.GetUID() {
			return fmt.Errorf("%s is there: %w", u.GetName(), world.ErrOther)
		}

		return client.IgnoreNotFound(err)
	}
}

// isThere checks that a managed resource is there, and not being deleted.
func (c cluster) isThere(u *unstructured.Unstructured) check {
	return func(ctx context.Context) error {
		live := u.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
			return err
		}

		if live.GetUID() != u.GetUID() || resource.Deleting(live) {
			return fmt.Errorf("%s is another one, or being deleted: %w", u.GetName(), world.ErrOther)
		}

		return nil
	}
}

func (c cluster) rack(ctx context.Context, policies string, slots ...string) error {
	return c.apply(ctx, hans, fmt.Sprintf(`{apiVersion: shop.example.org/v1, kind: Rack, metadata: {name: %s, namespace: default},
		spec: {policies: "%s", slots: [%s]}}`, c.name, policies, strings.Join(slots, ", ")))
}

// slots checks how many managed resources there are, each with its gate closed.
func (c cluster) slots(want int) check {
	return func(ctx context.Context) error {
		live, err := c.parts(ctx, objectKind())
		if err != nil || len(live) != want {
			return fmt.Errorf("%d slots (%w)", len(live), errors.Join(err, world.ErrOther))
		}

		for _, u := range live {
			if !management.Governed(u) || len(management.Acting(policies(u))) > 0 {
				return fmt.Errorf("%s has %v: %w", u.GetName(), policies(u), world.ErrOther)
			}
		}

		return nil
	}
}

// TestTheFirstOfAListGoes has all that are named by their place in a list stand for the next one's external object.
func TestTheFirstOfAListGoes(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Rack", "row")
	pending := pendingsOf(t, "shop.example.org/v1", "Rack", namespace, c.name)

	c.play(t, []scenario.Step{
		{Title: "Three slots", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "racks.yaml"), c.rack(ctx, "*", "a", "b", "c")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "three ConfigMaps", all(c.outside("a", "b", "c"), c.slots(3), c.settled))
		}},
		{Title: "The first is taken out", Run: func(ctx context.Context) error {
			if err := c.rack(ctx, "*", "b", "c"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "what would be destroyed", pending.lists([]string{hansName},
				held{kind: "Object", field: "delete", destroys: true})); err != nil {
				return err
			}

			return rests(ctx, "all three", all(c.outside("a", "b", "c"), c.says("it would delete ConfigMap default/row-c", `composed resource "slot-1"`)))
		}},
	})
}

// TestWhatIsOnlyObservedIsNotDeleted has a Composition ask for more of what was only to be observed, and then deletes it.
func TestWhatIsOnlyObservedIsNotDeleted(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Rack", "theirs")
	pending := pendingsOf(t, "shop.example.org/v1", "Rack", namespace, c.name)

	c.play(t, []scenario.Step{
		{Title: "What others made", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs-a, namespace: default}, data: {who: they}}"); err != nil {
				return err
			}

			if err := errors.Join(c.applyFile(ctx, "racks.yaml"), c.rack(ctx, "Observe", "a")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a slot", all(c.slots(1), c.settled))
		}},
		{Title: "More is asked for", Run: func(ctx context.Context) error {
			if err := c.rack(ctx, "*", "a"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "that it is held", all(c.says(`spec.managementPolicies ["Observe"]`),
				pending.lists([]string{hansName}, held{kind: "Object", field: "spec.managementPolicies"})))
		}},
		{Title: "It is deleted", Run: func(ctx context.Context) error {
			if err := c.removed(hans, metav1.DeletePropagationForeground)(ctx); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "its end", c.ended); err != nil {
				return err
			}

			return rests(ctx, "what others made", c.outside("a"))
		}},
	})
}

// TestAForegroundDeletionWithoutAGrantWaitsForNothing has an XR go without what may not be deleted with it.
func TestAForegroundDeletionWithoutAGrantWaitsForNothing(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Rack", "waits")

	var slot *unstructured.Unstructured

	c.play(t, []scenario.Step{
		{Title: "A slot", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "racks.yaml"), c.rack(ctx, "*", "a")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a ConfigMap", all(c.outside("a"), c.slots(1), c.settled)); err != nil {
				return err
			}

			var err error
			slot, err = c.part(ctx, objectKind(), "slot-0")

			return err
		}},
		{Title: "Who may not deletes it", Run: func(ctx context.Context) error {
			if err := c.removed(anna, metav1.DeletePropagationForeground)(ctx); err != nil {
				return err
			}

			return errors.Join(scenario.Eventually(ctx, "the end of the rack", c.ended),
				rests(ctx, "what stands outside, and the slot", all(c.outside("a"), c.isThere(slot))))
		}},
		{Title: "It is released", Run: func(ctx context.Context) error {
			if err := c.released(ctx, anna, slot); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the ConfigMap alone", all(c.isGone(slot), c.outside("a")))
		}},
	})
}

// providerConfig checks that the ProviderConfig of the composite resource's name is there, and in use.
func (c cluster) providerConfig(ctx context.Context) error {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("kubernetes.crossplane.io/v1alpha1")
	u.SetKind("ProviderConfig")

	if err := c.Get(ctx, client.ObjectKey{Name: c.name}, u); err != nil {
		return err
	}

	if users := resource.Int(u.Object, "status", "users"); users == 0 {
		return fmt.Errorf("nothing uses it: %w", world.ErrOther)
	}

	return nil
}

// TestAProviderConfigStaysForItsUsers has an XR compose what the provider of a part of it needs, and somebody delete the XR: who may,
// and who may not, until the part is released.
func TestAProviderConfigStaysForItsUsers(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		user string
		how  metav1.DeletionPropagation
	}{
		"foreground":        {hans, metav1.DeletePropagationForeground},
		"background":        {hans, metav1.DeletePropagationBackground},
		"foreground-nobody": {anna, metav1.DeletePropagationForeground},
		"background-nobody": {anna, metav1.DeletePropagationBackground},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := newCluster(t, "Farm", "farm-"+name)
			c.namespace = ""

			var part *unstructured.Unstructured

			c.play(t, []scenario.Step{
				{Title: "A farm", Run: func(ctx context.Context) error {
					if err := errors.Join(c.applyFile(ctx, "farms.yaml"), c.farm(ctx)); err != nil {
						return err
					}

					if err := scenario.Eventually(ctx, "a ConfigMap", all(c.outside("a"), c.settled, c.providerConfig)); err != nil {
						return err
					}

					var err error
					part, err = c.part(ctx, oldObject(), "data")

					return err
				}},
				{Title: "It is deleted", Run: func(ctx context.Context) error {
					if err := c.removed(tc.user, tc.how)(ctx); err != nil {
						return err
					}

					left := c.noOutside("a")

					if tc.user == anna {
						if err := rests(ctx, "the ConfigMap, and what its provider needs", all(c.outside("a"), c.providerConfig)); err != nil {
							return err
						}

						if _, err := kausality(ctx, anna, "release", "object.kubernetes.crossplane.io/"+part.GetName(), "--orphan"); err != nil {
							return err
						}

						left = c.outside("a")
					}

					return scenario.Eventually(ctx, "the end of it", all(c.ended, c.isGone(part), left, func(ctx context.Context) error {
						if err := c.providerConfig(ctx); !apierrors.IsNotFound(err) {
							return fmt.Errorf("the ProviderConfig is there (%w)", errors.Join(err, world.ErrOther))
						}

						return nil
					}))
				}},
			})
		})
	}
}
