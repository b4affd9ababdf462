// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// GateManager is the field manager that owns spec.managementPolicies of
// governed managed resources.
const GateManager = "kausality-gate"

// actionGate is what events about gates say we did.
const actionGate = "MoveGate"

// gates moves the gates of managed resources.
type gates struct {
	client client.Client
	events events.EventRecorder
	opts   gate.Options
	now    func() time.Time

	written written
}

// reconcile makes the one move that a managed resource's gate needs now.
func (g *gates) reconcile(ctx context.Context, u *unstructured.Unstructured) (reconcile.Result, error) {
	if wait := g.written.behind(u, g.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}

	plan, err := gate.PlanFor(u, g.opts, g.now())
	if err != nil {
		g.events.Eventf(u, nil, corev1.EventTypeWarning, "KausalityAnnotation", actionGate, "%s; it allows nothing until it is mended", err)
	}

	if plan.Move == gate.Stay {
		if plan.Overdue {
			g.events.Eventf(u, nil, corev1.EventTypeWarning, "KausalityGateOverdue", actionGate, "The gate has been open since %s: %s",
				plan.Record.Since.UTC().Format(time.RFC3339), plan.Why)
		}

		return reconcile.Result{RequeueAfter: plan.Again}, nil
	}

	if err := g.move(ctx, u, plan); err != nil {
		return reconcile.Result{}, err
	}

	g.events.Eventf(u, nil, corev1.EventTypeNormal, "KausalityGate"+string(plan.Record.State), actionGate,
		"managementPolicies %v: %s", plan.Policies, plan.Why)
	log.FromContext(ctx).Info("Moved a gate", "move", plan.Move, "policies", plan.Policies,
		"generation", plan.Record.Generation, "why", plan.Why)

	return reconcile.Result{}, nil
}

// governed says whether a managed resource is ours to gate: its Composition
// runs the function, or we gated it before.
func governed(u *unstructured.Unstructured) bool {
	return resource.IsManaged(u) && (resource.Annotation(u, v1alpha1.AnnotationManagementPolicies) != "" ||
		resource.Annotation(u, v1alpha1.AnnotationGate) != "")
}

// move writes policies, record and allowances in one patch, which applies only
// to the version of the resource that the plan was made for.
func (g *gates) move(ctx context.Context, u *unstructured.Unstructured, plan gate.Plan) error {
	rec, err := allowance.Format(&plan.Record)
	if err != nil {
		return fmt.Errorf("cannot write the gate of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	annotations := map[string]any{v1alpha1.AnnotationGate: rec}
	if resource.Annotation(u, v1alpha1.AnnotationAllowances) != "" {
		annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(plan.Allowances)
	}

	policies := make([]any, len(plan.Policies))
	for i, p := range plan.Policies {
		policies[i] = p
	}

	meta := map[string]any{"name": u.GetName(), "resourceVersion": u.GetResourceVersion(), "annotations": annotations}
	if ns := u.GetNamespace(); ns != "" {
		meta["namespace"] = ns
	}

	patch := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": u.GetAPIVersion(),
		"kind":       u.GetKind(),
		keyMetadata:  meta,
		"spec":       map[string]any{"managementPolicies": policies},
	}}

	err = g.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.ForceOwnership, client.FieldOwner(GateManager))
	if err != nil {
		return fmt.Errorf("cannot move the gate of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	g.written.note(u.GetUID(), patch.GetResourceVersion(), g.now()) // The answer is read into the patch.

	return nil
}
