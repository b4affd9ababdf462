// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const rootPolicy = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: root-objects}
spec:
  match:
    apiGroup: kubernetes.m.crossplane.io
    kind: Object
    fields: [spec.forProvider.manifest.data.size]
    objectSelector: {matchLabels: {by: hand}}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{relation: External, mutations: [Update]}]
`

// handmade is a managed resource that a person makes.
func handmade(name, labels, size, color string) string {
	return fmt.Sprintf(`
apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: Object
metadata: {name: %[1]s, namespace: default, labels: {%[2]s}}
spec:
  providerConfigRef: {kind: ClusterProviderConfig, name: default}
  forProvider:
    manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: default}, data: {size: %[3]s, color: %[4]s}}
`, name, labels, size, color)
}

// closedRoot checks that a managed resource without a parent is closed, and what
// it stands for.
func (c cluster) closedRoot(name, size, color string) check {
	return func(ctx context.Context) error {
		u, err := c.get(ctx, objectKind(), name)
		if err != nil {
			return err
		}

		if err := gateOf(u, v1alpha1.GateClosed, "Observe"); err != nil {
			return err
		}

		out, err := c.configMap(ctx, name)
		if err != nil {
			return err
		}

		if gotSize, gotColor := resource.String(out.Object, "data", "size"), resource.String(out.Object, "data", "color"); gotSize != size || gotColor != color {
			return fmt.Errorf("it is %s and %s outside, want %s and %s: %w", gotSize, gotColor, size, color, world.ErrOther)
		}

		return nil
	}
}

// heldRoot checks that a managed resource without a parent keeps its color, for it is
// held that hans asks for another one.
func (c cluster) heldRoot(ctx context.Context, name string) error {
	u, err := c.get(ctx, objectKind(), name)
	if err != nil {
		return err
	}

	if got := resource.String(u.Object, "spec", "forProvider", "manifest", "data", "color"); got != "red" {
		return fmt.Errorf("the color is %q: %w", got, world.ErrOther)
	}

	return holds(u, dataField("color"), "red", "blue", hansName)
}

func TestAManagedResourceThatAPersonMakesIsGated(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	const name = "root-of-hans"

	c := newCluster(t, "Store", "none")

	c.play(t, []scenario.Step{
		{Title: "It is made, and its gate closes", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, rootPolicy); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, handmade(name, "by: hand", "small", "red")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a closed root", c.closedRoot(name, "small", "red"))
		}},
		{Title: "What is not allowed is held, as often as it is asked for", Run: func(ctx context.Context) error {
			for range 2 {
				if err := c.apply(ctx, hans, handmade(name, "by: hand", "small", "blue")); err != nil {
					return err
				}

				if err := c.heldRoot(ctx, name); err != nil {
					return err
				}
			}

			return still(ctx, c.closedRoot(name, "small", "red"))
		}},
		{Title: "What somebody may ask for reaches what it stands for, and not what is held beside it", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, handmade(name, "by: hand", "large", "blue")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a large root", c.closedRoot(name, "large", "red")); err != nil {
				return err
			}

			return c.heldRoot(ctx, name)
		}},
		{Title: "One that the policy does not select is not touched", Run: func(ctx context.Context) error {
			const other = "root-of-nobody"

			if err := c.apply(ctx, hans, handmade(other, "by: machine", "small", "red")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "an ungoverned root", func(ctx context.Context) error {
				u, err := c.get(ctx, objectKind(), other)
				if err != nil || !resource.Ready(u) {
					return fmt.Errorf("it is not ready (%w): %w", err, world.ErrOther)
				}

				if got := resource.Strings(u.Object, "spec", "managementPolicies"); len(got) != 1 || got[0] != "*" ||
					resource.Annotation(u, v1alpha1.AnnotationGate) != "" {
					return fmt.Errorf("it is gated: %v: %w", got, world.ErrOther)
				}

				return nil
			})
		}},
	})
}
