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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// gauge is a composite resource that composes one dial.
type gauge struct {
	cluster

	// policy is that of versions.
	policy parameterized

	// releases hold the versions that Crossplane may change a dial to.
	releases *unstructured.Unstructured
}

// dial checks a field of what the gauge composes.
func (g gauge) dial(field, want string) check {
	return func(ctx context.Context) error {
		live, err := g.parts(ctx, schema.GroupVersionKind{Group: "toys.example.org", Version: "v1", Kind: "Dial"})
		if err != nil {
			return err
		}

		u, ok := live["dial"]
		if !ok {
			return fmt.Errorf("there is no dial: %w", world.ErrOther)
		}

		if got := resource.String(u.Object, "spec", "forProvider", field); got != want {
			return fmt.Errorf("%s of the dial is %q, want %q: %w", field, got, want, world.ErrOther)
		}

		return nil
	}
}

// compose has the Composition ask for a version, and the gauge be looked at.
func (g gauge) compose(ctx context.Context, version string) error {
	text, err := os.ReadFile(filepath.Join("testdata", "gauges.yaml"))
	if err != nil {
		return err
	}

	for doc := range strings.SplitSeq(string(text), "---\n") {
		if strings.Contains(doc, "kind: Composition\n") {
			return g.apply(ctx, admin, strings.Replace(doc, "{version: v1}", "{version: "+version+"}", 1))
		}
	}

	return world.ErrOther
}

// release has the releases be some versions, and the gauge be looked at: nothing tells
// Crossplane of objects that functions require.
func (g gauge) release(ctx context.Context, versions string) error {
	if err := g.Patch(ctx, g.releases.DeepCopy(), world.Merge(`{"spec": {"versions": [`+versions+`]}}`)); err != nil {
		return err
	}

	return g.look(ctx)
}

// look has Crossplane reconcile the gauge.
func (g gauge) look(ctx context.Context) error {
	xr, err := g.xr(ctx)
	if err != nil {
		return err
	}

	return g.Patch(ctx, xr, world.Merge(`{"metadata": {"labels": {"looked": "`+metav1.Now().Format("150405.000")+`"}}}`))
}

// TestCrossplaneMayChooseWhatAParameterLists has the function read parameters that are
// there, change, are without rights, and of a kind that vanishes, where all else goes on.
func TestCrossplaneMayChooseWhatAParameterLists(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	g := gauge{cluster: newCluster(t, "Gauge", "left")}
	g.policy = parameterized{typed: typedAs(t, ""), policy: "dial-versions"}
	g.releases = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{"v1", "v2"}}}}
	g.releases.SetGroupVersionKind(schema.GroupVersionKind{Group: "gauges.example.org", Version: "v1", Kind: "Releases"})
	g.releases.SetNamespace(namespace)
	g.releases.SetName("stable")

	// Another one, of which nobody asks for another version until the end.
	other := g
	other.name = "right"

	role := right.RoleOfParameters(schema.GroupResource{Group: "gauges.example.org", Resource: "releases"})

	text, err := os.ReadFile(filepath.Join("testdata", "releases.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	g.play(t, []scenario.Step{
		{Title: "It is created", Run: func(ctx context.Context) error {
			if err := g.applyFile(ctx, "gauges.yaml"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "releases", func(ctx context.Context) error {
				return g.Create(ctx, g.releases.DeepCopy())
			}); err != nil {
				return err
			}

			if err := g.Create(ctx, &fixture.Documents[unstructured.Unstructured](t, string(text))[0]); err != nil {
				return err
			}

			for _, each := range []gauge{g, other} {
				if err := g.apply(ctx, hans, sized("Gauge", each.name, "small")); err != nil {
					return err
				}

				if err := scenario.Eventually(ctx, "a small gauge", all(each.dial("size", "small"), each.dial("version", "v1"), each.settled)); err != nil {
					return err
				}
			}

			return nil
		}},
		{Title: "Without rights nothing is chosen, and all else goes on", Run: func(ctx context.Context) error {
			if err := g.policy.has(ctx, v1alpha1.ConditionParametersReadable, metav1.ConditionFalse, v1alpha1.ReasonRightsMissing, right.Remedy); err != nil {
				return err
			}

			if err := g.compose(ctx, "v2"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held version", g.says("held", " of Dial left-")); err != nil {
				return err
			}

			return errors.Join(g.resize(ctx, "large", "v1"), other.resize(ctx, "large", "v1"))
		}},
		{Title: "With rights it is", Run: func(ctx context.Context) error {
			if err := g.Create(ctx, role.DeepCopy()); err != nil {
				return err
			}

			if err := g.policy.has(ctx, v1alpha1.ConditionParametersReadable, metav1.ConditionTrue, v1alpha1.ReasonReadable, ""); err != nil {
				return err
			}

			if err := g.look(ctx); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "version 2", all(g.dial("version", "v2"), g.settled))
		}},
		{Title: "What is not listed is held until it is", Run: func(ctx context.Context) error {
			if err := g.compose(ctx, "v3"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held version", g.says("held", " of Dial left-")); err != nil {
				return err
			}

			if err := g.release(ctx, `"v2", "v3"`); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "version 3", all(g.dial("version", "v3"), g.settled))
		}},
		{Title: "Missing parameters list nothing", Run: func(ctx context.Context) error {
			if err := g.Delete(ctx, g.releases.DeepCopy()); err != nil {
				return err
			}

			if err := g.compose(ctx, "v2"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held version", g.says("held", " of Dial left-")); err != nil {
				return err
			}

			return g.resize(ctx, "medium", "v3")
		}},
		{Title: "Where the kind is gone, all else goes on", Run: func(ctx context.Context) error {
			// Of an XR that waits for what parameters say, Crossplane would wait for these.
			if err := errors.Join(g.compose(ctx, "v3"), scenario.Eventually(ctx, "nothing held", g.settled)); err != nil {
				return err
			}

			if err := vanish(ctx, g.cluster, "releases.gauges.example.org", g.policy.policy); err != nil {
				return err
			}

			if err := g.policy.has(ctx, v1alpha1.ConditionParametersReadable, metav1.ConditionFalse, v1alpha1.ReasonKindUnknown, "serves no kind Releases"); err != nil {
				return err
			}

			for _, each := range []gauge{g, other} {
				if err := each.resize(ctx, "small", "v3"); err != nil {
					return err
				}
			}

			if err := g.compose(ctx, "v2"); err != nil {
				return err
			}

			return errors.Join(scenario.Eventually(ctx, "a held version", g.says("held", " of Dial left-")),
				g.resize(ctx, "large", "v3"), other.resize(ctx, "large", "v3"))
		}},
	})
}

// resize has a user change the size, and expects that and a version.
func (g gauge) resize(ctx context.Context, size, version string) error {
	if err := g.apply(ctx, hans, sized("Gauge", g.name, size)); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "a "+size+" gauge", all(g.dial("size", size), g.dial("version", version)))
}
