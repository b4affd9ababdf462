// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestAReportThatCannotBeMadeAtOnceIsMadeLater has a quota refuse what is composed in
// a later round, when all of the first is ready, and so is the composite resource:
// Crossplane then takes away what the function said of it.
func TestAReportThatCannotBeMadeAtOnceIsMadeLater(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "exceeds")
	ctx := t.Context()
	kind := schema.GroupVersionKind{Group: tenantGroup, Version: "v1", Kind: "Report"}

	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/views.sql.postgresql.m.example.org": apiresource.MustParse("0"),
		}},
	}
	world.Must(t, x.admin.Create(ctx, quota))
	world.Must(t, scenario.Eventually(ctx, "a quota in force", func(ctx context.Context) error {
		view := x.object(managedKind(kindView))
		view.Object["spec"] = map[string]any{"forProvider": map[string]any{"query": "select 1"}}

		if err := x.admin.Create(ctx, view, client.DryRunAll); err == nil {
			return fmt.Errorf("a View is not refused: %w", world.ErrOther)
		}

		return nil
	}))

	// 1. All that is composed so far is ready, and so is the report.
	report := x.object(kind)
	report.Object["spec"] = map[string]any{"connections": int64(5)}

	world.Must(t, x.hans.Create(ctx, report))
	world.Must(t, scenario.Eventually(ctx, "a refusal", func(ctx context.Context) error {
		u, err := x.get(ctx, kind)
		if err != nil {
			return err
		}

		said, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
		if said.Status != string(metav1.ConditionUnknown) || !resource.Ready(u) {
			return fmt.Errorf("the report is %v: %w", u.Object["status"], world.ErrOther)
		}

		return nil
	}))
	world.Must(t, x.rests(ctx, func(ctx context.Context) error {
		u, err := x.get(ctx, kind)
		if err == nil && resource.SeenReady(u, time.Now()) {
			err = fmt.Errorf("the report counts as made: %v: %w", u.Object, world.ErrOther)
		}

		return err
	}))

	// 2. The rest is made as soon as it can be: nobody has to ask for it.
	world.Must(t, x.admin.Delete(ctx, quota))
	world.Must(t, scenario.Eventually(ctx, "the view", all(x.closed(kindDatabase, kindView),
		x.executed(0, `CREATE MATERIALIZED VIEW "exceeds" AS select 1 as one`), func(ctx context.Context) error {
			u, err := x.get(ctx, kind)
			if err == nil && !resource.SeenReady(u, time.Now()) {
				err = fmt.Errorf("the report is %v: %w", u.Object["status"], world.ErrOther)
			}

			return err
		})))
}
