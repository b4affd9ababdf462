// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// condition checks status and reason of the Kausality condition, and what it says.
func (c cluster) condition(status corev1.ConditionStatus, reason string, words ...string) check {
	return func(ctx context.Context) error {
		u, err := c.xr(ctx)
		if err != nil {
			return err
		}

		got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
		if got.Status != string(status) || got.Reason != reason {
			return fmt.Errorf("the condition is %+v, want %s, %s: %w", got, status, reason, world.ErrOther)
		}

		return c.says(words...)(ctx)
	}
}

// traced checks what the plugin says of the part, for people and for programs.
func (c cluster) traced(words ...string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), "data")
		if err != nil {
			return err
		}

		name := "object.kubernetes.m.crossplane.io/" + u.GetName()

		text, err := kausality(ctx, hans, "trace", name, "-n", u.GetNamespace())
		if err != nil {
			return err
		}

		if flat := strings.Join(strings.Fields(text), " "); !mentions(flat, words...) {
			return fmt.Errorf("trace says %q, not %q: %w", text, words, world.ErrOther)
		}

		raw, err := kausality(ctx, hans, "trace", name, "-n", u.GetNamespace(), "-o", "json")
		if err != nil {
			return err
		}

		doc := struct {
			Held []v1alpha1.HeldChange `json:"held"`
		}{}
		if err := json.Unmarshal([]byte(raw), &doc); err != nil {
			return fmt.Errorf("trace -o json: %w", err)
		}

		if h := doc.Held; len(h) != 1 || h[0].Field != "spec.forProvider.manifest.data.version" || h[0].From != "v1" || h[0].To != "v2" || allowance.Author(h[0]) != "" {
			return fmt.Errorf("trace -o json says %+v: %w", h, world.ErrOther)
		}

		return nil
	}
}

// versioned checks the version that the part's spec has, and whether its annotation says that another one is held.
func (c cluster) versioned(version string, held bool) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), "data")
		if err != nil {
			return err
		}

		got := resource.String(u.Object, "spec", "forProvider", "manifest", "data", "version")

		list, err := allowance.ParseHeld(u)
		if err != nil || got != version || (len(list) > 0) != held {
			return fmt.Errorf("the version is %q, want %q; annotation %s is %+v (%w)", got, version, v1alpha1.AnnotationHeld, list, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// TestACompositionThatDropsTheFunctionIsReported takes the function out of a Composition
// that changes, and puts it back.
func TestACompositionThatDropsTheFunctionIsReported(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	const said = "spec.forProvider.manifest.data.version (v1 → v2"

	c := newCluster(t, "Store", "dropped")
	without := func(composition string) string {
		out, _, _ := strings.Cut(composition, "  - step: kausality\n")

		return out
	}

	c.play(t, []scenario.Step{
		{Title: "A store", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, storeComposition("dropped", "v1", "data")),
				c.apply(ctx, hans, storeOf("dropped", "dropped", "small"))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small store", all(c.shows("version", "v1", "data"), c.settled))
		}},
		{Title: "Without the function the condition does not go on to say settled, and the gate stays", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, without(storeComposition("dropped", "v2", "data"))); err != nil {
				return err
			}

			return rests(ctx, "a condition that says so", all(c.shows("version", "v1", "data"), c.versioned("v1", true), c.traced(said),
				c.condition(corev1.ConditionUnknown, v1alpha1.ReasonNotRun, ": CompositionRevision dropped-", "has no step that runs function-kausality")))
		}},
		{Title: "With it, what nothing allows is held by the function", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition("dropped", "v2", "data")); err != nil {
				return err
			}

			return rests(ctx, "a condition that says so", all(c.shows("version", "v1", "data"), c.versioned("v1", false),
				c.condition(corev1.ConditionFalse, v1alpha1.ReasonHeld, ": settled", "1 change held", " of Object",
					"spec.forProvider.manifest.data.version v1 → v2", "kubectl kausality pending")))
		}},
		{Title: "Back at what was asked for, the managed resource is, and what has no gate is held as any other change", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition("dropped", "v1", "data")); err != nil {
				return err
			}

			return rests(ctx, "a settled store", all(c.shows("version", "v1", "data"), c.versioned("v1", false), c.says(": settled", "1 change held", " of ConfigMap")))
		}},
	})
}
