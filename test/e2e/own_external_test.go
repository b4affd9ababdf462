// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// shedColor lets anna change the color, outside, too.
const shedColor = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: shed-color}
spec:
  match: {apiGroup: shop.example.org, kind: Shed, fields: [spec.color]}
  subjects: [{kind: Group, name: app-team, mayInitiate: true}]
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data.color]}
  - {relation: External, mutations: [Update]}
`

// sheds installs stores by another name that have a color, and a policy about
// their size that lets nothing leave.
func (c cluster) sheds(ctx context.Context) (*strings.Replacer, error) {
	const external, patch, size = "  - {relation: External, mutations: [Update]}\n",
		"        - {fromFieldPath: spec.size, toFieldPath: spec.forProvider.manifest.data.size}\n", "              size: {type: string}\n"

	shed := strings.NewReplacer("Store", "Shed", "stores", "sheds", "store-size", "shed-size", external, "",
		size, size+strings.Replace(size, "size", "color", 1), patch, patch+strings.ReplaceAll(patch, "size", "color"), "spec: {size: ", "spec: {color: COLOR, size: ")

	text, err := os.ReadFile(filepath.Join("testdata", "stores.yaml"))
	if err != nil {
		return nil, err
	}

	return shed, errors.Join(c.apply(ctx, admin, shed.Replace(string(text))), c.apply(ctx, admin, shedColor),
		c.apply(ctx, admin, shed.Replace(storeComposition("sheds", "v1", "data"))))
}

// storesSize checks the size in the spec of the part.
func (c cluster) storesSize(want string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), "data")
		if err != nil {
			return err
		}

		if got := resource.String(u.Object, "spec", "forProvider", "manifest", "data", "size"); got != want {
			return fmt.Errorf("the size is %q, want %q: %w", got, want, world.ErrOther)
		}

		return nil
	}
}

// TestEachChangeLeavesUnderItsOwnExternal has two people change two fields that two
// policies allow, one of them without External, in both orders.
func TestEachChangeLeavesUnderItsOwnExternal(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	const (
		keeps   = "spec.forProvider.manifest.data.size small → large"
		without = "not External Update, which opens its gate"
	)

	c := newCluster(t, "Shed", "size-first")
	r := c.of("Shed", "color-first")

	var shed *strings.Replacer

	shape := func(ctx context.Context, c cluster, user, size, color string) error {
		return c.apply(ctx, user, strings.Replace(shed.Replace(storeOf("sheds", c.name, size)), "COLOR", color, 1))
	}

	c.play(t, []scenario.Step{
		{Title: "Two sheds", Run: func(ctx context.Context) (err error) {
			if shed, err = c.sheds(ctx); err != nil {
				return err
			}

			if err := errors.Join(shape(ctx, c, admin, "small", "red"), shape(ctx, r, admin, "small", "red")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "two small red sheds", all(
				c.shows("size", "small", "data"), c.shows("color", "red", "data"), c.settled,
				r.shows("size", "small", "data"), r.shows("color", "red", "data"), r.settled))
		}},
		{Title: "A size that may not leave, and then a color that may", Run: func(ctx context.Context) error {
			if err := shape(ctx, c, hans, "large", "red"); err != nil {
				return err
			}

			if err := rests(ctx, "a size that is held", all(c.storesSize("small"), c.says("settled", keeps, without))); err != nil {
				return err
			}

			if err := shape(ctx, c, anna, "large", "blue"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a blue shed of the old size", all(c.shows("color", "blue", "data"), c.shows("size", "small", "data"),
				c.says(keeps)))
		}},
		{Title: "A color that may leave, and a size that may not right after it", Run: func(ctx context.Context) error {
			if err := errors.Join(shape(ctx, r, anna, "small", "blue"), shape(ctx, r, hans, "large", "blue")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a blue shed of the old size", all(r.shows("color", "blue", "data"), r.shows("size", "small", "data"),
				r.says(keeps)))
		}},
		{Title: "Neither size ever leaves", Run: func(ctx context.Context) error {
			return still(ctx, all(c.shows("size", "small", "data"), c.storesSize("small"), r.shows("size", "small", "data"), r.storesSize("small")))
		}},
	})
}
