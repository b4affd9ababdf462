// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestInShadowModeNothingIsGrantedAndItIsReportedWhatWouldBe has a policy that is not to
// count yet.
func TestInShadowModeNothingIsGrantedAndItIsReportedWhatWouldBe(t *testing.T) {
	t.Parallel()

	const field = "spec.settings[shadow.lab.example.org/cost]"

	l := newLab(t, "lab-shadow", "none")

	hansen, err := l.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	plan := l.plan.DeepCopy()
	if err := hansen.Patch(t.Context(), plan, world.Merge(`{"spec": {"settings": {"shadow.lab.example.org/cost": "a"}}}`)); err != nil {
		t.Fatal(err)
	}

	if got := resource.Annotation(plan, v1alpha1.AnnotationAllowances); got != "" {
		t.Errorf("it allows %s", got)
	}

	audited(t, l, plan, "Warned", map[string]string{"shadow": field + ` would be allowed by AllowancePolicy "lab-shadow"`})

	counted := metrics(t, running.ManagerMetricsURL()).Sum("kausality_webhook_shadow_total", "kind=Plan", "verdict=Allowed", "policy=lab-shadow")
	if counted == 0 {
		t.Error("it is not counted")
	}

	p := &unstructured.Unstructured{}
	p.SetAPIVersion("kausality.io/v1alpha1")
	p.SetKind("AllowancePolicy")

	if err := scenario.Eventually(t.Context(), "a status", func(ctx context.Context) error {
		if err := l.Get(ctx, client.ObjectKey{Name: "lab-shadow"}, p); err != nil {
			return err
		}

		if c, _ := resource.ConditionOf(p, v1alpha1.ConditionReady); !c.True() || c.Reason != v1alpha1.ReasonShadow {
			return fmt.Errorf("%+v: %w", c, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
