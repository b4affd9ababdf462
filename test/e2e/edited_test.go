// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// edited checks who edited the composite resource without being allowed to.
func (c cluster) edited(users ...string) check {
	return func(ctx context.Context) error {
		u, err := c.xr(ctx)
		if err != nil {
			return err
		}

		edits, err := allowance.ParseEdits(u)
		if err != nil {
			return err
		}

		if len(edits) != len(users) {
			return fmt.Errorf("%q has edits %+v, want of %q: %w", c.name, edits, users, world.ErrOther)
		}

		for i, e := range edits {
			if e.User != users[i] || e.Field != "spec.size" || e.From != "small" {
				return fmt.Errorf("%q has edit %+v, want of %q: %w", c.name, e, users[i], world.ErrOther)
			}
		}

		return nil
	}
}

func TestAWindowCarriesNobodysEditAlong(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	const composition, editor = "edits", anna + "@example.com"

	c := newCluster(t, "Store", "edited")
	cache := "cache"

	c.play(t, []scenario.Step{
		{Title: "A store is made, and its gate closes", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "stores.yaml"); err != nil {
				return err
			}

			if err := errors.Join(c.apply(ctx, admin, storeComposition(composition, "v1", cache)),
				c.apply(ctx, hans, storeOf(composition, c.name, "small"))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", cache), c.note("size", "small"), c.settled, c.edited()))
		}},
		{Title: "What anna may not change is stored, noted and held", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, anna, storeOf(composition, c.name, "huge")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a held size", all(c.edited(editor), c.says("edited by "+editor+": spec.size", "stays small (asked: huge)")))
		}},
		{Title: "A window for Crossplane does not carry it along", Run: func(ctx context.Context) error {
			open := newUpgrade(ctx, t, c, "edits-open", fmt.Sprintf(crossplaneWindow, "selector: {matchLabels: {crossplane.io/composite: "+c.name+"}}"))

			if err := scenario.Eventually(ctx, "a window", all(open.is(true, v1alpha1.ReasonActive), c.says(`UpgradeAllowance "edits-open" grants nothing`))); err != nil {
				return err
			}

			return still(ctx, all(c.shows("size", "small", cache), c.note("size", "small")))
		}},
		{Title: "Once it is taken back the window serves", Run: func(ctx context.Context) error {
			if err := errors.Join(c.apply(ctx, anna, storeOf(composition, c.name, "small")),
				c.apply(ctx, admin, storeComposition(composition, "v2", cache))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a new version", all(c.edited(), c.shows("version", "v2", cache), c.note("version", "v2"), c.settled))
		}},
	})
}
