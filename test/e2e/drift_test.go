// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// outsideWindow lets the provider do to a kiosk what differs outside.
const outsideWindow = `{
  serviceAccount: "system:serviceaccount:crossplane-system:provider-kubernetes",
  validFrom: "2026-01-01T00:00:00Z", validUntil: "2126-01-01T00:00:00Z", %s
  selector: {matchLabels: {crossplane.io/composite: %s}},
  allow: [{relation: External, mutations: [Update]}]}`

// drift has somebody change the external object.
func (c cluster) drift(ctx context.Context) error {
	out, err := c.configMap(ctx, c.name+"-data")
	if err != nil {
		return err
	}

	return c.Patch(ctx, out, world.Merge(`{"data": {"size": "drifted"}}`))
}

// openedBy checks that a window is on record as one that opened the gate, and that
// it left nothing else behind.
func (c cluster) openedBy(want ...string) check {
	return func(ctx context.Context) error {
		u, err := c.data(ctx)
		if err != nil {
			return err
		}

		rec, err := allowance.ParseGate(u)
		list, broken := allowance.Parse(u)

		if err := errors.Join(err, broken); err != nil {
			return err
		}

		var got []string
		for _, w := range rec.Windows {
			got = append(got, w.Name)
		}

		if fmt.Sprint(got) != fmt.Sprint(want) || len(list) > 0 {
			return fmt.Errorf("opened by %q, with allowances %+v, want by %q: %w", got, list, want, world.ErrOther)
		}

		return nil
	}
}

func TestAWindowForTheOutsideLetsARepairOfDriftThroughOnce(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Kiosk", "drift")

	var once, more upgrade

	shut := all(c.gateIs(v1alpha1.GateClosed), c.settled)

	c.play(t, []scenario.Step{
		c.opened("{settle: 2s}"),
		{Title: "What differs outside stays, for no change is allowed", Run: func(ctx context.Context) error {
			if err := rests(ctx, "a kiosk", all(c.outsideIs("small"), shut)); err != nil {
				return err
			}

			if err := c.drift(ctx); err != nil {
				return err
			}

			return rests(ctx, "drift", all(c.outsideIs("drifted"), shut))
		}},
		{Title: "A window that is suspended changes nothing", Run: func(ctx context.Context) error {
			once = newUpgrade(ctx, t, c, "drift-once", fmt.Sprintf(outsideWindow, "suspend: true,", c.name))

			if err := scenario.Eventually(ctx, "a window", once.is(false, v1alpha1.ReasonSuspended)); err != nil {
				return err
			}

			return rests(ctx, "drift", all(c.outsideIs("drifted"), shut))
		}},
		{Title: "It goes on, and the provider puts the outside right; then the gate is closed", Run: func(ctx context.Context) error {
			if err := once.Patch(ctx, once.object(), world.Merge(`{"spec": {"suspend": false}}`)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a repair", all(once.is(true, v1alpha1.ReasonActive), c.outsideIs("small"), shut,
				c.openedBy("drift-once"), once.used(1), once.events("Started")))
		}},
		{Title: "The window does so once", Run: func(ctx context.Context) error {
			if err := c.drift(ctx); err != nil {
				return err
			}

			return rests(ctx, "drift", all(c.outsideIs("drifted"), shut, once.used(1)))
		}},
		{Title: "Another one does it again", Run: func(ctx context.Context) error {
			more = newUpgrade(ctx, t, c, "drift-more", fmt.Sprintf(outsideWindow, "", c.name))

			return scenario.Eventually(ctx, "a repair", all(c.outsideIs("small"), shut, c.openedBy("drift-once", "drift-more"), more.used(1)))
		}},
		{Title: "One that is over has the gate closed though the outside differs", Run: func(ctx context.Context) error {
			return c.overWhileOpen(ctx, t)
		}},
	})
}

// overWhileOpen has a window end while the external object cannot be put right.
func (c cluster) overWhileOpen(ctx context.Context, t *testing.T) error {
	t.Helper()

	out, err := c.configMap(ctx, c.name+"-data")
	if err != nil {
		return err
	}

	// No provider changes what is immutable.
	if err := c.Patch(ctx, out, world.Merge(`{"data": {"size": "drifted"}, "immutable": true}`)); err != nil {
		return err
	}

	last := newUpgrade(ctx, t, c, "drift-last", fmt.Sprintf(outsideWindow, "", c.name))

	if err := scenario.Eventually(ctx, "an open gate", c.gateIs(v1alpha1.GateOpen)); err != nil {
		return err
	}

	if err := last.end(ctx); err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "a closed gate", all(last.is(false, v1alpha1.ReasonEnded), c.gateIs(v1alpha1.GateClosed), c.outsideIs("drifted"),
		c.openedBy("drift-once", "drift-more"))); err != nil {
		return err
	}

	return c.Delete(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": out.GetName(), "namespace": out.GetNamespace()},
	}})
}
