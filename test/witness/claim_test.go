// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func clusterDatabase() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sql.postgresql.example.org", Version: "v1beta1", Kind: kindDatabase}
}

// TestAClaimOfAClusterScopedDatabase changes and deletes one that a Claim asked
// for, and that is named by its external name.
func TestAClaimOfAClusterScopedDatabase(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "claimed")
	ctx := t.Context()
	kind := schema.GroupVersionKind{Group: tenantGroup, Version: "v1", Kind: "TenantClaim"}

	claim := x.object(kind)
	claim.Object["spec"] = map[string]any{"connections": int64(5), "compositeDeletePolicy": "Background"}

	world.Must(t, x.hans.Create(ctx, claim))
	world.Must(t, scenario.Eventually(ctx, "a database", all(x.claims("Closed"),
		x.executes(0, `CREATE DATABASE "claimed" TEMPLATE "template0" CONNECTION LIMIT 5`))))

	// 1. Another external name is another database: nobody may, and it is held.
	live, err := x.claimedDatabase(ctx)
	world.Must(t, err)
	world.Must(t, x.hans.Patch(ctx, live, world.Merge(`{"metadata": {"annotations": {"crossplane.io/external-name": "template1"}}}`)))

	if name := resource.Annotation(live, "crossplane.io/external-name"); name != x.name || resource.Annotation(live, v1alpha1.AnnotationHeld) == "" {
		t.Errorf("a managed resource stands for %q: %v", name, live.GetAnnotations())
	}

	// 2. Nor may anybody decide what becomes of it.
	world.Must(t, x.hans.Patch(ctx, live, world.Merge(`{"spec": {"deletionPolicy": "Orphan"}}`)))

	if policy := resource.String(live.Object, "spec", "deletionPolicy"); policy == "Orphan" || !strings.Contains(resource.Annotation(live, v1alpha1.AnnotationHeld), "spec.deletionPolicy") {
		t.Errorf("the external object becomes %q: %v", policy, live.GetAnnotations())
	}

	// 3. A change, down two levels.
	world.Must(t, x.hans.Patch(ctx, x.object(kind), world.Merge(`{"metadata": {"annotations": {"ticket": "T-1"}}, "spec": {"connections": 6}}`)))
	world.Must(t, scenario.Eventually(ctx, "a change", all(x.claims("Closed"), x.outside("connections", "6"), x.executes(1, `ALTER DATABASE "claimed" CONNECTION LIMIT 6`))))

	// 4. The deletion, with the ticket that is still there.
	world.Must(t, x.hans.Delete(ctx, x.object(kind)))
	world.Must(t, scenario.Eventually(ctx, "a deletion", all(x.outside("connections", ""),
		x.executes(1, `ALTER DATABASE "claimed" CONNECTION LIMIT 6`, `DROP DATABASE "claimed" WITH (FORCE)`), func(ctx context.Context) error {
			if u, err := x.claimedDatabase(ctx); err == nil {
				return fmt.Errorf("%s is there: %w", u.GetName(), world.ErrOther)
			}

			return nil
		})))
}

// claimedDatabase is the managed resource of the Claim of that name.
func (x tenant) claimedDatabase(ctx context.Context) (*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterDatabase())

	if err := x.admin.List(ctx, list, client.MatchingLabels{"crossplane.io/claim-namespace": x.namespace}); err != nil {
		return nil, err
	}

	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%d databases: %w", len(list.Items), world.ErrOther)
	}

	return &list.Items[0], nil
}

// claims checks the gate of that managed resource.
func (x tenant) claims(state v1alpha1.GateState) check {
	return func(ctx context.Context) error {
		u, err := x.claimedDatabase(ctx)
		if err != nil {
			return err
		}

		rec, err := allowance.ParseGate(u)
		if err != nil {
			return err
		}

		if rec == nil || rec.State != state {
			return fmt.Errorf("the gate of %s is %+v, want %s: %w", u.GetName(), rec, state, world.ErrOther)
		}

		if name := resource.Annotation(u, "crossplane.io/external-name"); name != x.name {
			return fmt.Errorf("it stands for %q, want %q: %w", name, x.name, world.ErrOther)
		}

		return nil
	}
}
