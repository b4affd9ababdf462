// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// storeComposition composes managed resources, each with a label that tells
// which version of the Composition made it, and a ConfigMap.
func storeComposition(name, version string, parts ...string) string {
	var resources strings.Builder

	for _, part := range parts {
		fmt.Fprintf(&resources, `
      - name: %[1]s
        base:
          apiVersion: kubernetes.m.crossplane.io/v1alpha1
          kind: Object
          spec:
            providerConfigRef: {kind: ClusterProviderConfig, name: default}
            forProvider:
              manifest:
                apiVersion: v1
                kind: ConfigMap
                metadata: {namespace: default}
                data: {version: %[2]s}
        patches:
        - {fromFieldPath: spec.size, toFieldPath: spec.forProvider.manifest.data.size}
        - fromFieldPath: metadata.name
          toFieldPath: spec.forProvider.manifest.metadata.name
          transforms: [{type: string, string: {type: Format, fmt: "%%s-%[1]s"}}]`, part, version)
	}

	return `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: ` + name + `}
spec:
  compositeTypeRef: {apiVersion: shop.example.org/v1, kind: Store}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: note
        base:
          apiVersion: v1
          kind: ConfigMap
          data: {version: ` + version + `}
        patches:
        - {fromFieldPath: spec.size, toFieldPath: data.size}
        readinessChecks: [{type: None}]` + resources.String() + `
  - step: ready
    functionRef: {name: function-auto-ready}
  - step: kausality
    functionRef: {name: function-kausality}
`
}

func storeOf(composition, name, size string) string {
	return fmt.Sprintf(`
apiVersion: shop.example.org/v1
kind: Store
metadata: {name: %s, namespace: default}
spec: {size: %s, crossplane: {compositionRef: {name: %s}}}
`, name, size, composition)
}

// storeWindow lets Crossplane do what a new version of the Composition wants.
func storeWindow(name, mutation, verb string) string {
	return fmt.Sprintf(`
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: %s}
spec:
  serviceAccount: system:serviceaccount:crossplane-system:crossplane
  validFrom: "2026-01-01T00:00:00Z"
  validUntil: "2126-01-01T00:00:00Z"
  selector: {matchLabels: {crossplane.io/composite: corner}} # Other tests have stores too.
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [%[2]s]}
  - {kind: ConfigMap, mutations: [%[2]s]}
  - {relation: External, mutations: [%[3]s]}
`, name, mutation, verb)
}

// note checks what the store's composed ConfigMap says.
func (c cluster) note(key, value string) check {
	return func(ctx context.Context) error {
		live, err := c.parts(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		if err != nil {
			return err
		}

		u := live["note"]
		if u == nil {
			u = &unstructured.Unstructured{}
		}

		if got := resource.String(u.Object, "data", key); got != value {
			return fmt.Errorf("%s of the note is %q, want %q: %w", key, got, value, world.ErrOther)
		}

		return nil
	}
}

func TestANamespacedCompositeResourceOfSeveral(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Store", "corner")
	cache, data, queue := "cache", "data", "queue"

	c.play(t, []scenario.Step{
		{Title: "It is created, and its gates close", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "stores.yaml"); err != nil {
				return err
			}

			if err := c.apply(ctx, admin, storeComposition("corners", "v1", cache, data, queue)); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, storeOf("corners", "corner", "small")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small store",
				all(c.shows("size", "small", cache, data, queue), c.note("size", "small"), c.settled))
		}},
		{Title: "An allowed change reaches all of it", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, storeOf("corners", "corner", "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large store",
				all(c.shows("size", "large", cache, data, queue), c.note("size", "large"), c.settled, c.spent))
		}},
		{Title: "A new version of the Composition is held, all of it", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition("corners", "v2", cache, data, queue)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "four held changes", c.says("settled, 4 changes held",
				"spec.forProvider.manifest.data.version v1 → v2", "data.version v1 → v2")); err != nil {
				return err
			}

			return still(ctx, all(c.shows("version", "v1", cache, data, queue), c.note("version", "v1")))
		}},
		{Title: "An UpgradeAllowance releases it", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeWindow("store-upgrade", "data,spec.forProvider.manifest.data", "Update")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a new version",
				all(c.shows("version", "v2", cache, data, queue), c.note("version", "v2"), c.settled))
		}},
		{Title: "A deletion that is not allowed is held, and does not stop the others", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition("corners", "v2", cache, data)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held deletion", c.says("1 change held", "deletion of Object corner-")); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, storeOf("corners", "corner", "tiny")); err != nil {
				return err
			}

			// What stays beside it is no longer composed: its size is nobody's.
			return scenario.Eventually(ctx, "a tiny store but for the one to delete", all(
				c.shows("size", "tiny", cache, data), c.shows("size", "large", queue), c.note("size", "tiny"),
				c.says("settled, 1 change held", "deletion of Object corner-")))
		}},
		{Title: "An allowed deletion opens the gate for it, and deletes the external object", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeWindow("store-deletion", "delete", "Delete")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of the queue",
				all(c.gone(queue), c.shows("size", "tiny", cache, data), c.settled))
		}},
	})
}
