// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func TestAnAutoscalerScalesWhatIsComposed(t *testing.T) {
	world.Long(t)
	t.Parallel()

	a := newApp(t, "scaled")
	ctx := t.Context()

	if err := a.apply(ctx, admin, templated("scaled", "v1", stepKausality)); err != nil {
		t.Fatal(err)
	}

	if err := a.apply(ctx, hans, appOf("scaled", "scaled", "web-1")); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "an App that settles", all(a.runs("web-1"), a.settled, a.spent)); err != nil {
		t.Fatal(err, a.dump(ctx))
	}

	u, err := a.live(ctx, "deployment")
	if err != nil {
		t.Fatal(err)
	}

	autoscaler := impersonate(t, podAutoscaler)
	scaled := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName()}}
	// Like the autoscaler, it tries again where somebody else writes meanwhile.
	scale := func(to int32) check {
		return func(ctx context.Context) error {
			s := &autoscalingv1.Scale{}
			if err := autoscaler.SubResource("scale").Get(ctx, scaled, s); err != nil || s.Spec.Replicas == to {
				return err
			}

			s.Spec.Replicas = to

			return autoscaler.SubResource("scale").Update(ctx, scaled, client.WithSubResourceBody(s))
		}
	}

	// Crossplane may apply once more what it read before.
	if err := scenario.Eventually(ctx, "a scaled Deployment that stays so", all(scale(3), func(ctx context.Context) error {
		return still(ctx, all(a.replicas(3), a.settled))
	})); err != nil {
		t.Fatal(err, a.dump(ctx))
	}

	if u, err = a.live(ctx, "deployment"); err != nil {
		t.Fatal(err)
	}

	generation := u.GetGeneration()

	for i := range int32(20) {
		to := 1 + i%3
		if err := scenario.Eventually(ctx, "a scale", scale(to)); err != nil {
			t.Fatal(err)
		}

		generation++

		if err := scenario.Eventually(ctx, "a scaled Deployment beside a settled App", all(a.replicas(int64(to)), a.settled)); err != nil {
			t.Fatal(err, a.dump(ctx))
		}
	}

	// Nobody but the autoscaler wrote its spec.
	if err := rests(ctx, "an App beside a scaled Deployment", all(a.generation(generation), a.settled, a.spent)); err != nil {
		t.Error(err, a.dump(ctx))
	}
}

func (a app) replicas(want int64) check {
	return func(ctx context.Context) error {
		u, err := a.live(ctx, "deployment")
		if err != nil {
			return err
		}

		got, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")

		if got != want || seen != u.GetGeneration() {
			return fmt.Errorf("there are %d replicas, generation %d of %d, want %d: %w", got, seen, u.GetGeneration(), want, world.ErrOther)
		}

		return nil
	}
}
