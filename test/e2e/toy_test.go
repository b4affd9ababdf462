// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// widget checks a field of what the toy composes.
func (c cluster) widget(field, want string) check {
	return func(ctx context.Context) error {
		live, err := c.parts(ctx, schema.GroupVersionKind{Group: "toys.example.org", Version: "v1", Kind: "Widget"})
		if err != nil {
			return err
		}

		u, ok := live["widget"]
		if !ok {
			return fmt.Errorf("there is no widget: %w", world.ErrOther)
		}

		if got := resource.String(u.Object, "spec", "forProvider", field); got != want {
			return fmt.Errorf("%s of the widget is %q, want %q: %w", field, got, want, world.ErrOther)
		}

		return nil
	}
}

func TestAKindWithoutManagementPoliciesIsHeldWithoutAGate(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Toy", "bear")

	c.play(t, []scenario.Step{
		{Title: "It is created", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "toys.yaml"); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, sized("Toy", "bear", "small")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small bear", all(c.widget("size", "small"), c.settled))
		}},
		{Title: "An allowed change passes", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, sized("Toy", "bear", "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large bear", all(c.widget("size", "large"), c.settled, c.spent))
		}},
		{Title: "Another Composition is held", Run: func(ctx context.Context) error {
			text, err := os.ReadFile("testdata/toys.yaml")
			if err != nil {
				return err
			}

			if err := c.apply(ctx, admin, strings.Replace(string(text), "{version: v1}", "{version: v2}", 1)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held change", c.says("settled, 1 change held", " of Widget bear-")); err != nil {
				return err
			}

			return still(ctx, c.widget("version", "v1"))
		}},
	})
}
