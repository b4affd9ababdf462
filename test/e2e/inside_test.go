// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

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
			return fmt.Errorf("trace says %q, not %q: %w", text, words, errOther)
		}

		raw, err := kausality(ctx, hans, "trace", name, "-n", u.GetNamespace(), "-o", "json")
		if err != nil {
			return err
		}

		doc := struct {
			Stored []struct {
				Field   string `json:"field"`
				Value   string `json:"value"`
				Allowed string `json:"allowed"`
				User    string `json:"user"`
				Since   string `json:"since"`
				Inside  bool   `json:"inside"`
			} `json:"stored"`
		}{}
		if err := json.Unmarshal([]byte(raw), &doc); err != nil {
			return fmt.Errorf("trace -o json: %w", err)
		}

		if s := doc.Stored; len(s) != 1 || s[0].Field != "spec.forProvider.manifest.data.version" || s[0].Value != "v2" || s[0].Allowed != "v1" ||
			s[0].User != "system:serviceaccount:crossplane-system:crossplane" || s[0].Since == "" || !s[0].Inside {
			return fmt.Errorf("trace -o json says %+v: %w", s, errOther)
		}

		return nil
	}
}

// TestDriftThatOnlyARecordKnowsIsTold has a Composition want something else while it
// runs without the function, and then with it again: XR and managed resource agree,
// and the external object is as it was.
func TestDriftThatOnlyARecordKnowsIsTold(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	const (
		function = "  - step: kausality\n    functionRef: {name: function-kausality}\n"
		said     = "spec.forProvider.manifest.data.version is v2, and stays v1 outside: it was stored by " +
			"system:serviceaccount:crossplane-system:crossplane at "
	)

	c := newCluster(t, "Store", "drifting")

	c.play(t, []scenario.Step{
		{Title: "A store", Run: func(ctx context.Context) error {
			err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, storeComposition("driftings", "v1", "data")),
				c.apply(ctx, hans, storeOf("driftings", "drifting", "small")))
			if err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", "data"), c.settled))
		}},
		{Title: "Without the function its Composition wants another version, which does not leave, and trace says so", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, strings.Replace(storeComposition("driftings", "v2", "data"), function, "", 1)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a version that is stored", all(c.stored("v2", "v1"), c.shows("version", "v1", "data"), c.traced(said)))
		}},
		{Title: "With the function again the condition says so, too", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition("driftings", "v2", "data")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a condition that tells", all(
				c.says("settled", "1 held: ", said, "and the gate did not let it out: take it back, or add an AllowancePolicy about Store that allows "+
					"Object spec.forProvider.manifest.data.version and External Update, and have it made anew"),
				c.traced(said, "take it back"), c.shows("version", "v1", "data")))
		}},
		{Title: "Taken back it is as it was", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition("driftings", "v1", "data")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a store without drift", all(c.stored("v1", ""), c.settled))
		}},
	})
}
