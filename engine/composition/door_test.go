// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// onceApplied is what is observed of a managed resource once Crossplane has applied a result, with the allowance that the webhook
// stamps for the change.
func onceApplied(req composition.Request) *unstructured.Unstructured {
	u := applied(req.Observed, req.XR, composition.Decide(req).Desired)
	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationAllowances] = `[{relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0',
  source: {type: Policy, field: spec.forProvider.instanceClass}, trace: [{kind: RDSInstance, name: db-rds, generation: 8, field: spec.forProvider.instanceClass}]}]`
	u.SetAnnotations(annotations)
	u.SetGeneration(8)

	return u
}

// TestAGateOpensForNothingElseWhereTheWebhookWasNotAsked until what was stored is reverted.
func TestAGateOpensForNothingElseWhereTheWebhookWasNotAsked(t *testing.T) {
	byHand := []string{
		`"f:instanceClass": {}, "f:engine": {}`, `"f:instanceClass": {}`,
		"spec:\n  managementPolicies", "  - {manager: kubectl-edit, operation: Update, fieldsV1: {\"f:spec\": {\"f:forProvider\": {\"f:engine\": {}}}}}\nspec:\n  managementPolicies",
		"engine: postgres", "engine: mysql",
	}

	for name, tc := range map[string]struct {
		reason   string
		observed []string
		again    string // The engine that is stored then, and the run once more; empty for one run.
		engine   string
		move     gate.Move
	}{
		"AsApplied": {reason: "All is as it was let through.", engine: "postgres", move: gate.OpenUp},
		"Stored":    {reason: "What somebody stored would go out with it.", observed: byHand, engine: "mysql", move: gate.Stay},
		"StoredYet": {reason: "It would in the next run too, though Crossplane has applied it.", observed: byHand, again: "mysql", engine: "mysql", move: gate.Stay},
		"Reverted":  {reason: "It would no more.", observed: byHand, again: "postgres", engine: "postgres", move: gate.OpenUp},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestFor(t, allowing("spec.forProvider.instanceClass", "Update"), edit(t, observedRDS, tc.observed...),
				edit(t, desiredRDS, "instanceClass: small", "instanceClass: large"))

			text, err := wish.RecordOf(object(t, desiredRDS).Object).Format(req.Desired.GetAPIVersion(), req.Desired.GetKind())
			if err != nil {
				t.Fatal(err)
			}

			resource.Map(req.Observed.Object, "metadata", "annotations")[v1alpha1.AnnotationWish] = text

			u := onceApplied(req)

			if tc.again != "" {
				resource.Map(u.Object, "spec", "forProvider")["engine"] = tc.again
				req.Observed = u
				u = onceApplied(req)
			}

			if got := resource.String(u.Object, "spec", "forProvider", "engine"); got != tc.engine {
				t.Fatalf("%s\nengine: %q", tc.reason, got)
			}

			plan, err := gate.PlanFor(u, gate.Options{LateInitialize: true}, time.Now())
			if err != nil || plan.Move != tc.move {
				t.Errorf("%s\nPlanFor: %s (%s), %v; want %s", tc.reason, plan.Move, plan.Why, err, tc.move)
			}
		})
	}
}
