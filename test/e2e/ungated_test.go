// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func nopKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "nop.crossplane.io", Version: "v1alpha1", Kind: "NopResource"}
}

// nothing checks a field of what the yard composes, that it has no gate, and that
// no allowance is left on it.
func (c cluster) nothing(field, want string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, nopKind(), "nothing")
		if err != nil {
			return err
		}

		if list, err := allowance.Parse(u); err != nil || len(list) > 0 {
			return fmt.Errorf("%d allowances are left (%w)", len(list), errors.Join(err, world.ErrOther))
		}

		if got := resource.String(u.Object, "spec", "forProvider", "fields", field); got != want {
			return fmt.Errorf("%s is %q, want %q: %w", field, got, want, world.ErrOther)
		}

		return gateOf(u, v1alpha1.GateUngated, "*")
	}
}

// reported checks that it is reported that what the yard composes is not gated: by
// an event, a metric and on the policy.
func (c cluster) reported(ctx context.Context) error {
	u, err := c.part(ctx, nopKind(), "nothing")
	if err != nil {
		return err
	}

	list := &eventsv1.EventList{}
	if err := c.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
		return err
	}

	found := false
	for _, e := range list.Items {
		found = found || e.Regarding.UID == u.GetUID() && e.Reason == "KausalityUngated" && strings.Contains(e.Note, "does not support management policies")
	}

	if !found {
		return fmt.Errorf("no event on %q: %w", u.GetName(), world.ErrOther)
	}

	text, err := scraped(ctx)
	if err != nil || !strings.Contains(text, `kausality_ungated_resources{group="nop.crossplane.io",kind="NopResource"} 1`) {
		return fmt.Errorf("metrics: %w", errors.Join(err, world.ErrOther))
	}

	p, err := c.get(ctx, schema.GroupVersionKind{Group: "kausality.io", Version: "v1alpha1", Kind: "AllowancePolicy"}, "yard-size")
	if err != nil {
		return err
	}

	got, _ := resource.ConditionOf(p, v1alpha1.ConditionGated)
	if want := "the provider of NopResource.nop.crossplane.io does not support management policies"; !strings.Contains(got.Message, want) {
		return fmt.Errorf("the policy says %q, not %q: %w", got.Message, want, world.ErrOther)
	}

	return nil
}

func TestAProviderWithoutManagementPoliciesIsLetBeAndReported(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Yard", "back")

	c.play(t, []scenario.Step{
		{Title: "Its resource becomes ready without a gate, and that is told", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "yards.yaml"); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, sized("Yard", "back", "small")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small yard", all(c.nothing("size", "small"), c.settled, c.reported))
		}},
		{Title: "An allowed change passes", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, sized("Yard", "back", "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large yard", all(c.nothing("size", "large"), c.settled, c.spent))
		}},
		{Title: "One that is not allowed is held", Run: func(ctx context.Context) error {
			text, err := os.ReadFile("testdata/yards.yaml")
			if err != nil {
				return err
			}

			if err := c.apply(ctx, admin, strings.Replace(string(text), "{version: v1}", "{version: v2}", 1)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held change", c.says("settled, 1 change held", " of NopResource back-")); err != nil {
				return err
			}

			return still(ctx, c.nothing("version", "v1"))
		}},
		{Title: "It goes with its owner", Run: func(ctx context.Context) error {
			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			if err := c.Delete(ctx, xr); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of it", func(ctx context.Context) error {
				if live, err := c.parts(ctx, nopKind()); err != nil || len(live) > 0 {
					return fmt.Errorf("%d are left (%w)", len(live), errors.Join(err, world.ErrOther))
				}

				return nil
			})
		}},
	})
}
