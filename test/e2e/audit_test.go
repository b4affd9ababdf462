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

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// auditing is a Composition that runs the function in mode Audit.
func auditing(composition string) string {
	const step = "functionRef: {name: function-kausality}\n"

	return strings.Replace(composition, step, step+"    input: {apiVersion: kausality.io/v1alpha1, kind: Input, mode: Audit}\n", 1)
}

// dataIs checks the management policies and the gate's record of the data.
func (c cluster) dataIs(policies string, gate ...string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), "data")
		if err != nil {
			return err
		}

		got := strings.Join(resource.Strings(u.Object, "spec", "managementPolicies"), " ")
		if got != policies {
			return fmt.Errorf("managementPolicies are %q, want %q: %w", got, policies, world.ErrOther)
		}

		record := resource.Annotation(u, v1alpha1.AnnotationGate)
		for _, want := range gate {
			if want == "" && record != "" || !strings.Contains(record, want) {
				return fmt.Errorf("the gate's record is %q, want %q: %w", record, want, world.ErrOther)
			}
		}

		return nil
	}
}

// TestModeAuditOnlyReports has a Composition change, and drop, what nobody allowed
// for: in mode Audit that gets outside, whatever was gated before.
func TestModeAuditOnlyReports(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Store", "watched")

	composed := func(version string, parts ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.apply(ctx, admin, storeComposition("watched", version, parts...))
		}
	}
	audited := func(version string, parts ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.apply(ctx, admin, auditing(storeComposition("watched", version, parts...)))
		}
	}
	outside := func(version string, parts ...string) check {
		return func(ctx context.Context) error {
			for _, part := range parts {
				out, err := c.configMap(ctx, c.name+"-"+part)
				if err != nil {
					return err
				}

				if got := resource.String(out.Object, "data", "version"); got != version {
					return fmt.Errorf("%s is in version %q outside, want %q: %w", part, got, version, world.ErrOther)
				}
			}

			return nil
		}
	}
	gone := func(part string) check {
		return func(ctx context.Context) error {
			if err := c.outside(part)(ctx); err == nil {
				return fmt.Errorf("%s is still there outside: %w", part, world.ErrOther)
			}

			return nil
		}
	}

	c.play(t, []scenario.Step{
		{Title: "In mode Audit a store has no gates", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "stores.yaml"); err != nil {
				return err
			}

			if err := errors.Join(audited("v1", "cache", "data", "queue")(ctx),
				c.apply(ctx, hans, storeOf("watched", "watched", "small"))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a store without gates", all(
				outside("v1", "cache", "data", "queue"), c.settled, c.dataIs("*", "")))
		}},
		{Title: "What is not allowed gets outside, and is reported", Run: func(ctx context.Context) error {
			if err := audited("v2", "cache", "data", "queue")(ctx); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a new version outside", all(
				outside("v2", "cache", "data", "queue"), c.settled, c.dataIs("*", "")))
		}},
		{Title: "In mode Hold the gates close", Run: func(ctx context.Context) error {
			if err := composed("v2", "cache", "data", "queue")(ctx); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "closed gates", all(c.settled, c.dataIs("Observe", "state: Closed")))
		}},
		{Title: "And hold", Run: func(ctx context.Context) error {
			if err := composed("v3", "cache", "data")(ctx); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "held changes", c.says("→ v3", "deletion of ")); err != nil {
				return err
			}

			return still(ctx, all(c.shows("version", "v2", "cache", "data", "queue"), c.dataIs("Observe", "state: Closed")))
		}},
		{Title: "Back in mode Audit all of it gets outside, and what is dropped is deleted there", Run: func(ctx context.Context) error {
			if err := audited("v3", "cache", "data")(ctx); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the new version", all(
				outside("v3", "cache", "data"), gone("queue"), c.settled, c.dataIs("*", "state: Ungated", "audit: true")))
		}},
		{Title: "Nobody but the function takes a gate away", Run: func(ctx context.Context) error {
			if err := composed("v3", "cache", "data")(ctx); err != nil {
				return err
			}

			closed := c.dataIs("Observe", "state: Closed")
			if err := scenario.Eventually(ctx, "closed gates", all(c.settled, closed)); err != nil {
				return err
			}

			u, err := c.part(ctx, objectKind(), "data")
			if err != nil {
				return err
			}

			if err := c.Patch(ctx, u, world.Merge(`{"metadata": {"annotations": {"`+v1alpha1.AnnotationDesiredPolicies+`": "{\"v\":1,\"policies\":[\"*\"],\"mode\":\"Audit\"}"}}}`)); err == nil {
				return fmt.Errorf("a person wrote the mode: %w", world.ErrOther)
			}

			return errors.Join(still(ctx, closed), rests(ctx, "a settled store", all(closed, c.settled)))
		}},
	})
}
