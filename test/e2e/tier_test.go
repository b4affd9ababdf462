// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestAClusterScopedKindHoldsParameters which the policy selects.
func TestAClusterScopedKindHoldsParameters(t *testing.T) {
	world.Long(t)
	t.Parallel()

	l := newLab(t, "lab-tiers", "none")
	ctx := t.Context()

	// It is in force once its parameters can be read.
	role := right.RoleOfParameters(schema.GroupResource{Group: "tiers.lab.example.org", Resource: "tiers"})
	if err := errors.Join(client.IgnoreAlreadyExists(l.Create(ctx, &role)), l.applyFile(ctx, "tiers.yaml")); err != nil {
		t.Fatal(err)
	}

	as := warnedAs(t, hans, "platform-team", "system:masters", "system:authenticated")

	// eventually waits until a cost of the plan is allowed, or is not and is warned of.
	eventually := func(cost string, may bool, says string) {
		t.Helper()

		patch := world.Merge(`{"spec": {"settings": {"tiers.lab.example.org/cost": "` + cost + `"}}}`)

		if err := scenario.Eventually(ctx, fmt.Sprintf("cost %s being allowed: %t", cost, may), func(ctx context.Context) error {
			as.Take()

			plan := l.plan.DeepCopy()
			if err := as.Patch(ctx, plan, patch, client.DryRunAll); err != nil {
				return err
			}

			text := as.Take()
			if logged, err := auditOf(plan.GetNamespace(), plan.GetName()); err == nil { // It has the whole reason.
				text += "\n" + logged["missing"]
			}

			if got := resource.Annotation(plan, v1alpha1.AnnotationAllowances); (got != "") != may || !mentions(text, says) {
				return fmt.Errorf("allowances %q, and said %q: %w", got, text, world.ErrOther)
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}

	eventually("low", false, `there is no Tier of labels "for in (all,plans)"`)

	tier := func(name, label string, costs ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"costs": costs}}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "tiers.lab.example.org", Version: "v1", Kind: "Tier"})
		u.SetName(name)
		u.SetLabels(map[string]string{"for": label})

		return u
	}

	for _, u := range []*unstructured.Unstructured{tier("one", "plans", "low", "high"), tier("other", "tasks", "none")} {
		if err := scenario.Eventually(ctx, "a tier", func(ctx context.Context) error { return l.Create(ctx, u) }); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = l.Delete(context.WithoutCancel(ctx), u) })
	}

	eventually("low", true, "")

	two := tier("two", "all", "high")
	if err := l.Create(ctx, two); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Delete(context.WithoutCancel(ctx), two) })

	eventually("low", false, `(with Tier "two")`)
	eventually("high", true, "")
}
