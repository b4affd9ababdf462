// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// vast is a Vast of some bytes for each of its five parts.
func vast(bytes int) string {
	return fmt.Sprintf("{apiVersion: shop.example.org/v1, kind: Vast, metadata: {name: vast, namespace: default}, spec: {size: %d}}", bytes)
}

// bytes checks how many bytes each of the five parts has.
func (c cluster) bytes(want int) check {
	return func(ctx context.Context) error {
		live, err := c.parts(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		if err != nil {
			return err
		}

		if len(live) != 5 {
			return fmt.Errorf("there are %d parts, want 5: %w", len(live), world.ErrOther)
		}

		for name, u := range live {
			if got := len(resource.String(u.Object, "data", "bytes")); got != want {
				return fmt.Errorf("%q has %d bytes, want %d: %w", name, got, want, world.ErrOther)
			}
		}

		return nil
	}
}

// TestWhatIsTooLargeForCrossplaneIsNamed composes more than the function is sent by default of
// gRPC, and more than Crossplane reads.
func TestWhatIsTooLargeForCrossplaneIsNamed(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	const mebibyte = 1 << 20

	c := newCluster(t, "Vast", "vast")

	c.play(t, []scenario.Step{
		{Title: "Less than 3 MiB is composed, and once more: what is observed and desired together is more than 4 MiB", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "vast.yaml"); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, vast(mebibyte/2)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "large parts", all(c.bytes(mebibyte/2), c.settled))
		}},
		{Title: "More is refused, and it is said what is large", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, vast(mebibyte*2/3)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a fatal result", c.synced(
				"the desired state is too large for Crossplane to read: it has ", " KiB, of 3072 KiB at most; the largest of 5 composed resources",
				`"part-`, "(ConfigMap vast-", " with 684 KiB", "compose smaller ones, or fewer",
			)); err != nil {
				return err
			}

			return c.bytes(mebibyte / 2)(ctx)
		}},
		{Title: "Less goes on", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, vast(mebibyte/2)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "large parts again", all(c.bytes(mebibyte/2), c.settled))
		}},
	})
}

// synced checks that the condition Synced is False and says some texts.
func (c cluster) synced(texts ...string) check {
	return func(ctx context.Context) error {
		u, err := c.xr(ctx)
		if err != nil {
			return err
		}

		if got, _ := resource.ConditionOf(u, "Synced"); got.Status != "False" || !mentions(got.Message, texts...) {
			return fmt.Errorf("%+v: %w", got, world.ErrOther)
		}

		return nil
	}
}
