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

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func sized(kind, name, size string) string {
	return fmt.Sprintf("{apiVersion: shop.example.org/v1, kind: %s, metadata: {name: %s, namespace: default}, spec: {size: %s}}", kind, name, size)
}

// path checks that the trace of a part says by which objects a field came to
// its value.
func (c cluster) path(part, field, want string) check {
	return func(ctx context.Context) error {
		live, err := c.parts(ctx, objectKind())
		if err != nil {
			return err
		}

		entries, err := allowance.ParseTrace(live[part])
		if err != nil {
			return err
		}

		for _, e := range entries {
			if e.Field != field {
				continue
			}

			hops := make([]string, len(e.Trace))
			for i, h := range e.Trace {
				hops[i] = h.Kind
			}

			if got := e.Initiator + ": " + strings.Join(hops, " "); got != want {
				return fmt.Errorf("%s of %q came to be by %q, want %q: %w", field, part, got, want, world.ErrOther)
			}

			return nil
		}

		return fmt.Errorf("no trace of %s of %q: %w", field, part, world.ErrOther)
	}
}

func TestAChangePassesTwoLevelsOfCompositeResources(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Mall", "south")
	below := c.of("Store", "south-store")

	c.play(t, []scenario.Step{
		{Title: "It is created, and the gates close", Run: func(ctx context.Context) error {
			for _, file := range []string{"stores.yaml", "malls.yaml"} {
				if err := c.applyFile(ctx, file); err != nil {
					return err
				}
			}

			if err := c.apply(ctx, admin, storeComposition("mall-stores", "v1", "data")); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, sized("Mall", "south", "small")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small mall", all(below.shows("size", "small", "data"), below.settled, c.settled))
		}},
		{Title: "An allowed change reaches the end, and leaves nothing open", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, sized("Mall", "south", "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large mall", all(below.shows("size", "large", "data"),
				below.settled, below.spent, c.settled, c.spent,
				below.path("data", "spec.forProvider.manifest.data.size", "hans@example.com: Mall Store Object")))
		}},
		{Title: "Nobody else's change gets through", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, sized("Mall", "south", "huge")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held change",
				c.says("1 change held: spec.size of Store south-store (large → huge)")); err != nil {
				return err
			}

			large := below.shows("size", "large", "data")

			return errors.Join(still(ctx, large), rests(ctx, "a settled store below", all(large, below.settled, c.spent)))
		}},
	})
}

func TestACompositeResourceWhosePartsFollowEachOtherSettlesUnderOneAllowance(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Chain", "long")

	c.play(t, []scenario.Step{
		{Title: "It is created, one part after the other", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "chains.yaml"); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, sized("Chain", "long", "small")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small chain", all(c.shows("size", "small", "first", "second"), c.settled))
		}},
		{Title: "A change reaches one part after the other, and nothing stays open", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, sized("Chain", "long", "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large chain", all(c.shows("size", "large", "first", "second"), c.settled, c.spent,
				c.path("second", "spec.forProvider.manifest.data.size", "hans@example.com: Chain Object")))
		}},
	})
}
