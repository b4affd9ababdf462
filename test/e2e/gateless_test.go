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
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// oldObject is the kind of a managed resource that namespaced ones have replaced, in its version with a gate.
func oldObject() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: "Object"}
}

// rolls are what composes rolls in a version of their kind, and after our step.
func rolls(version, after string) (string, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "rolls.yaml"))

	return strings.ReplaceAll(string(text), "VERSION", version) + after, err
}

// afterUs is a step after ours that composes one more.
const afterUs = `  - step: late
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: late
        base:
          apiVersion: kubernetes.crossplane.io/v1alpha2
          kind: Object
          spec: {providerConfigRef: {name: default}, forProvider: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default}}}}
        patches:
        - type: FromCompositeFieldPath
          fromFieldPath: metadata.name
          toFieldPath: spec.forProvider.manifest.metadata.name
          transforms: [{type: string, string: {type: Format, fmt: "%s-late"}}]
        readinessChecks: [{type: None}]
`

// roll composes rolls so, and asks for one.
func (c cluster) roll(ctx context.Context, version, after string) error {
	text, err := rolls(version, after)
	if err != nil {
		return err
	}

	return errors.Join(c.apply(ctx, admin, text), c.apply(ctx, hans, fmt.Sprintf(
		`{apiVersion: shop.example.org/v1, kind: Roll, metadata: {name: %s}, spec: {size: small}}`, c.name)))
}

// TestWhatHasNoGateIsHeldOrTold composes a managed resource in a version of its kind without spec.managementPolicies, which the
// API server converts, and one after our step.
func TestWhatHasNoGateIsHeldOrTold(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Roll", "toast")
	c.namespace = ""

	c.play(t, []scenario.Step{
		{Title: "A version without a gate is held", Run: func(ctx context.Context) error {
			if err := c.roll(ctx, "v1alpha1", ""); err != nil {
				return err
			}

			said := c.says("creation of ", "its gate is spec.managementPolicies, which v1alpha1 does not have: compose it in v1alpha2")
			if err := scenario.Eventually(ctx, "word of it", said); err != nil {
				return err
			}

			return rests(ctx, "nothing outside", all(c.rollOutside("data", false), said))
		}},
		{Title: "The other version has one", Run: func(ctx context.Context) error {
			if err := c.roll(ctx, "v1alpha2", ""); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a roll with a gate", all(c.rollOutside("data", true), c.rollGate("data", true), c.settled))
		}},
		{Title: "It keeps that one", Run: func(ctx context.Context) error {
			if err := c.roll(ctx, "v1alpha1", ""); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "word of it", c.says("which v1alpha1 does not have: compose it in v1alpha2")); err != nil {
				return err
			}

			return rests(ctx, "a roll with a gate", all(c.rollOutside("data", true), c.rollGate("data", true)))
		}},
		{Title: "What a later step composes is told", Run: func(ctx context.Context) error {
			if err := c.roll(ctx, "v1alpha2", afterUs); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "word of it", all(c.rollOutside("late", true), c.rollGate("late", false), c.rollHeard("late", "Make it the last step"),
				metricIs(`kausality_resources_without_gate{group="kubernetes.crossplane.io",kind="Object"} 1`)))
		}},
	})
}

// TestWhatAnXRWithoutTheFunctionComposesBelowOneIsTold has only the outer one of two Compositions run the function.
func TestWhatAnXRWithoutTheFunctionComposesBelowOneIsTold(t *testing.T) { //nolint:tparallel // One step.
	t.Parallel()

	c := newCluster(t, "Loaf", "rye")
	crumb := c.of("Crumb", c.name)

	c.play(t, []scenario.Step{{Title: "A loaf", Run: func(ctx context.Context) error {
		if err := errors.Join(c.applyFile(ctx, "loaves.yaml"), c.apply(ctx, hans, sized("Loaf", c.name, "small"))); err != nil {
			return err
		}

		return scenario.Eventually(ctx, "word of what has no gate", all(c.outside("data"), func(ctx context.Context) error {
			data, err := crumb.part(ctx, objectKind(), "data")
			if err != nil {
				return err
			}

			list, err := eventsOf(ctx, data, string(v1alpha1.EventReasonUngated))
			if err != nil || !mentions(strings.Join(notes(list), "; "), "runs the function: the function did not compose it") {
				return fmt.Errorf("events %v: %w", notes(list), errors.Join(err, world.ErrOther))
			}

			return metricIs(`kausality_resources_without_gate{group="kubernetes.m.crossplane.io",kind="Object"} 1`)(ctx)
		}))
	}}})
}

// rollOutside checks whether an external object of a roll is there.
func (c cluster) rollOutside(name string, want bool) check {
	return func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})

		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: c.name + "-" + name}, u)
		if client.IgnoreNotFound(err) != nil || (err == nil) != want {
			return fmt.Errorf("external object %q, want %v: %w", name, want, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// rollPart is what a roll composes under a name, and whether that has a gate.
func (c cluster) rollPart(ctx context.Context, name string) (*unstructured.Unstructured, bool, error) {
	live, err := c.parts(ctx, oldObject())
	if err != nil || live[name] == nil {
		return nil, false, errors.Join(err, world.ErrOther)
	}

	open := resource.Annotation(live[name], v1alpha1.AnnotationGate) == "" && slices.Equal(policies(live[name]), []string{management.ActionAll})

	return live[name], !open, nil
}

// rollGate checks whether it has a gate.
func (c cluster) rollGate(name string, want bool) check {
	return func(ctx context.Context) error {
		_, gated, err := c.rollPart(ctx, name)
		if err != nil || gated != want {
			return fmt.Errorf("%s has a gate: %v: %w", name, gated, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// rollHeard checks that its having none was told.
func (c cluster) rollHeard(name, words string) check {
	return func(ctx context.Context) error {
		u, _, err := c.rollPart(ctx, name)
		if err != nil {
			return err
		}

		list, err := eventsOf(ctx, u, string(v1alpha1.EventReasonUngated))
		if err != nil || !mentions(strings.Join(notes(list), "; "), words) {
			return fmt.Errorf("events %v: %w", notes(list), errors.Join(err, world.ErrOther))
		}

		return nil
	}
}
