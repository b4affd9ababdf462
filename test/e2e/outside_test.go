// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// bag asks for a small bag.
func (c cluster) bag(ctx context.Context, color string) error {
	return c.apply(ctx, hans, fmt.Sprintf(`{apiVersion: shop.example.org/v1, kind: Bag, metadata: {name: %s, namespace: default},
		spec: {color: %s, size: small}}`, c.name, color))
}

// outsideHas checks the data of the external object.
func (c cluster) outsideHas(want map[string]any) check {
	return func(ctx context.Context) error {
		u, err := c.configMap(ctx, c.name+"-data")
		if err != nil {
			return err
		}

		if got, _ := u.Object["data"].(map[string]any); !maps.Equal(got, want) {
			return fmt.Errorf("outside is %v, want %v: %w", got, want, world.ErrOther)
		}

		return nil
	}
}

// by hand changes the external object.
func (c cluster) byHand(ctx context.Context, data string) error {
	out, err := c.configMap(ctx, c.name+"-data")
	if err != nil {
		return err
	}

	return c.Patch(ctx, out, world.Merge(`{"data": `+data+`}`))
}

// metricIs checks a line of the manager's metrics.
func metricIs(line string) check {
	return func(ctx context.Context) error {
		found, err := scraped(ctx)
		if err != nil || !mentions(found, line+"\n") {
			return fmt.Errorf("metrics lack %q: %w", line, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// metricIsPositive checks that a line of the manager's metrics has another number than zero: other tests have objects of the kind, too.
func metricIsPositive(line string) check {
	return func(ctx context.Context) error {
		found, err := scraped(ctx)
		if err != nil || !mentions(found, "\n"+line) || mentions(found, line+"0\n") {
			return fmt.Errorf("metrics lack a positive %q: %w", line, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// audits checks that kubectl kausality audit says something.
func audits(words string) check {
	return func(ctx context.Context) error {
		text, err := kausality(ctx, admin, "audit", "-o", "json")
		if !mentions(text, words) {
			return fmt.Errorf("audit lacks %q: %w", words, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// TestWhatSomebodyChangesOutsideGoesWithNoOtherChange has somebody change the external object, and somebody else ask for another
// field of it.
func TestWhatSomebodyChangesOutsideGoesWithNoOtherChange(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Bag", "drifter")
	p := pendingsOf(t, "shop.example.org/v1", "Bag", namespace, c.name)
	berta := approverNamed(t, "drift-berta", [3]string{v1alpha1.VerbApprove, "kubernetes.m.crossplane.io", "objects"})
	drift := held{kind: "Object", field: "spec.forProvider.manifest.data.size", to: "small", cause: v1alpha1.CauseDrift, parent: "Object"}
	data := func(color, size string) check { return c.outsideHas(map[string]any{"color": color, "size": size}) }

	c.play(t, []scenario.Step{
		{Title: "A bag", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "bags.yaml"), c.bag(ctx, "red")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small red bag", all(data("red", "small"), c.gateIs(v1alpha1.GateClosed), c.settled))
		}},
		{Title: "A change of both", Run: func(ctx context.Context) error {
			if err := c.bag(ctx, "green"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small green bag", all(data("green", "small"), c.gateIs(v1alpha1.GateClosed), c.settled))
		}},
		{Title: "Somebody changes it outside, which is told", Run: func(ctx context.Context) error {
			if err := c.byHand(ctx, `{"size": "HUGE"}`); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "drift", all(p.lists(nil, drift), c.settled,
				c.heard(string(v1alpha1.EventReasonDrift), "data.size is changed from small to HUGE"),
				audits("its external object was changed outside: spec.forProvider.manifest.data.size is changed from small to HUGE"),
				metricIsPositive(`kausality_drifted_resources{group="kubernetes.m.crossplane.io",kind="Object"} `)))
		}},
		{Title: "Another field does not take it along", Run: func(ctx context.Context) error {
			if err := c.bag(ctx, "blue"); err != nil {
				return err
			}

			return rests(ctx, "a huge green bag", all(data("green", "HUGE"), c.gateIs(v1alpha1.GateClosed), p.lists(nil, drift)))
		}},
		{Title: "Until somebody approves it", Run: func(ctx context.Context) error {
			if err := berta.approve(ctx, p, "revert", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small blue bag", all(data("blue", "small"), c.gateIs(v1alpha1.GateClosed), c.settled,
				p.becomes("revert", v1alpha1.ApprovalStateApplied), p.finished))
		}},
		{Title: "Or reverts it, there", Run: func(ctx context.Context) error {
			if err := c.byHand(ctx, `{"size": "tiny"}`); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "drift", p.lists(nil, drift)); err != nil {
				return err
			}

			if err := c.bag(ctx, "red"); err != nil {
				return err
			}

			if err := rests(ctx, "a tiny blue bag", data("blue", "tiny")); err != nil {
				return err
			}

			if err := c.byHand(ctx, `{"size": "small"}`); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small red bag", all(data("red", "small"), c.gateIs(v1alpha1.GateClosed), c.settled, p.lists(nil)))
		}},
		{Title: "What is removed and stays outside is told", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-data, namespace: default}, data: {size: small}}`, c.name)); err != nil {
				return err
			}

			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			u, err := c.as(hans)
			if err == nil {
				err = u.Patch(ctx, xr, world.Merge(`{"spec": {"size": null}}`))
			}

			if err != nil {
				return err
			}

			return scenario.Eventually(ctx, "word of it", all(data("red", "small"), c.gateIs(v1alpha1.GateClosed),
				c.heard(string(v1alpha1.EventReasonGateClosed), "the external object still shows spec.forProvider.manifest.data.size")))
		}},
	})
}

// creationGrace is for how long a provider takes what it has made, and does not find, for not there yet.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, pkg/reconciler/managed/reconciler.go, defaultGracePeriod.
const creationGrace = 30 * time.Second

// TestWhatIsGoneOutsideIsMadeByNoUpdate has somebody delete the external object, and somebody else ask for another value.
func TestWhatIsGoneOutsideIsMadeByNoUpdate(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Bag", "lost")
	p := pendingsOf(t, "shop.example.org/v1", "Bag", namespace, c.name)
	berta := approverNamed(t, "lost-berta", [3]string{v1alpha1.VerbApprove, "kubernetes.m.crossplane.io", "objects"})
	lost := held{kind: "Object", field: "spec.forProvider", to: "(recreated)", cause: v1alpha1.CauseDrift, parent: "Object"}

	vanishes := func(ctx context.Context) error {
		u, err := c.configMap(ctx, c.name+"-data")
		if err == nil {
			err = c.Delete(ctx, u)
		}

		return err
	}

	var part *unstructured.Unstructured

	c.play(t, []scenario.Step{
		{Title: "A bag", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "bags.yaml"), c.bag(ctx, "red")); err != nil {
				return err
			}

			// What is empty in the manifest its provider takes away, and Crossplane asks for it again.
			if err := scenario.Eventually(ctx, "a red bag", all(c.outside("data"), c.gateIs(v1alpha1.GateClosed), c.settled, c.inSync)); err != nil {
				return err
			}

			var err error
			part, err = c.part(ctx, objectKind(), "data")

			return err
		}},
		{Title: "Somebody deletes it outside, which is told", Run: func(ctx context.Context) error {
			select { // What its provider has made this long ago it does not make again before it has waited longer.
			case <-time.After(creationGrace):
			case <-ctx.Done():
				return ctx.Err()
			}

			if err := vanishes(ctx); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "word of it", all(p.lists(nil, lost), c.heard(string(v1alpha1.EventReasonDrift), "it is gone"),
				audits("its external object was changed outside: it is gone")))
		}},
		{Title: "Another color does not make it", Run: func(ctx context.Context) error {
			if err := c.bag(ctx, "blue"); err != nil {
				return err
			}

			return rests(ctx, "nothing outside", all(c.noOutside("data"), c.gateIs(v1alpha1.GateClosed), p.lists(nil, lost)))
		}},
		{Title: "Until somebody approves it", Run: func(ctx context.Context) error {
			if err := berta.approve(ctx, p, "anew", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a blue bag", all(c.outsideHas(map[string]any{"color": "blue", "size": "small"}), c.gateIs(v1alpha1.GateClosed),
				c.settled, p.becomes("anew", v1alpha1.ApprovalStateApplied), p.finished))
		}},
		{Title: "Nor is another object updated, until somebody approves it", Run: func(ctx context.Context) error {
			other := held{kind: "Object", field: "spec.forProvider", to: "(as asked)", cause: v1alpha1.CauseDrift, parent: "Object"}

			// The record knows the one that was made again from the next closing on.
			err := errors.Join(c.bag(ctx, "red"), scenario.Eventually(ctx, "a red bag", all(c.outsideHas(map[string]any{"color": "red", "size": "small"}),
				c.gateIs(v1alpha1.GateClosed), c.settled)), vanishes(ctx), c.apply(ctx, admin, fmt.Sprintf(
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-data, namespace: default}, data: {color: red, size: small}}`, c.name)))
			if err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "word of it", p.lists(nil, other)); err != nil {
				return err
			}

			if err := c.bag(ctx, "green"); err != nil {
				return err
			}

			if err := rests(ctx, "a red bag", all(c.outsideHas(map[string]any{"color": "red", "size": "small"}), p.lists(nil, other))); err != nil {
				return err
			}

			if err := berta.approve(ctx, p, "other", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a green bag", all(c.outsideHas(map[string]any{"color": "green", "size": "small"}),
				c.gateIs(v1alpha1.GateClosed), c.settled, p.finished))
		}},
		{Title: "What is gone keeps no managed resource that is released", Run: func(ctx context.Context) error {
			if err := errors.Join(vanishes(ctx), scenario.Eventually(ctx, "word of it", p.lists(nil, lost)),
				c.removed(anna, metav1.DeletePropagationForeground)(ctx)); err != nil {
				return err
			}

			if err := rests(ctx, "the managed resource", c.isThere(part)); err != nil {
				return err
			}

			if err := c.released(ctx, anna, part); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "nothing", all(c.ended, c.isGone(part), c.noOutside("data")))
		}},
	})
}

// TestWhatComesBackFromABackupDestroysNothing restores a managed resource of before Kausality, of an owner with another UID: the garbage
// collector deletes it.
func TestWhatComesBackFromABackupDestroysNothing(t *testing.T) { //nolint:tparallel // One step.
	t.Parallel()

	c := newCluster(t, "Bag", "restored")

	c.play(t, []scenario.Step{{Title: "A bag", Run: func(ctx context.Context) error {
		if err := errors.Join(c.applyFile(ctx, "bags.yaml"), c.bag(ctx, "red")); err != nil {
			return err
		}

		if err := scenario.Eventually(ctx, "a red bag", all(c.outside("data"), c.gateIs(v1alpha1.GateClosed), c.settled)); err != nil {
			return err
		}

		part, err := c.part(ctx, objectKind(), "data")
		if err != nil {
			return err
		}

		backup := &unstructured.Unstructured{Object: map[string]any{"spec": part.Object["spec"]}}
		backup.SetGroupVersionKind(part.GroupVersionKind())
		backup.SetName(part.GetName() + "-backup")
		backup.SetNamespace(part.GetNamespace())
		backup.SetFinalizers([]string{managed.ProviderFinalizer})

		owners := part.GetOwnerReferences()
		owners[0].UID = "of-before"
		backup.SetOwnerReferences(owners)

		if err := errors.Join(unstructured.SetNestedStringSlice(backup.Object, []string{management.ActionAll}, "spec", "managementPolicies"),
			controller(t, annaName).Create(ctx, backup)); err != nil {
			return err
		}

		kept := func(ctx context.Context) error {
			u, err := c.get(ctx, objectKind(), backup.GetName())
			if set := resource.Strings(u.Object, "spec", "managementPolicies"); err != nil || !management.Same(set, []string{management.ActionObserve}) {
				return fmt.Errorf("it has %v: %w", set, errors.Join(err, world.ErrOther))
			}

			return nil
		}

		return still(ctx, all(c.outside("data"), kept))
	}}})
}

// inSync checks that Crossplane applies what the composite resource is made of.
func (c cluster) inSync(ctx context.Context) error {
	u, err := c.xr(ctx)
	if err != nil {
		return err
	}

	if synced, _ := resource.ConditionOf(u, resource.ConditionSynced); !synced.True() {
		return fmt.Errorf("Synced is %q: %q: %w", synced.Reason, synced.Message, world.ErrOther)
	}

	return nil
}
