// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// actionGate is what events about gates say we did.
const actionGate = "MoveGate"

// gates moves the gates of managed resources.
type gates struct {
	client  client.Client
	events  events.EventRecorder
	ungated *ungated
	opts    gate.Options
	now     func() time.Time
	// policies say how gates are moved that they open.
	policies *policyGates
	// openers are the windows that open gates by themselves, and used is told of
	// each that did; nil for nobody.
	openers openers
	used    func(v1alpha1.GateWindow)
	ledger  *ledger
	// failed counts expressions that fail; nil for nobody.
	failed *expressions

	written written
}

// reconcile makes the one move that a managed resource's gate needs now.
func (g *gates) reconcile(ctx context.Context, u *unstructured.Unstructured) (reconcile.Result, error) {
	if wait := g.written.behind(u, g.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}

	gk, key := u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u)
	opts := g.opts
	opts.PolicyGate = g.policies.of(ctx)

	var err error
	if opts.Windows, err = g.openers.list(ctx); err != nil {
		return reconcile.Result{}, err
	}

	plan, err := gate.PlanFor(u, opts, g.now())
	g.tellUnread(u, err)
	g.failed.count(plan.Broken)

	ungated := g.ungated.set(u.GroupVersionKind(), key, plan.Ungated)

	if plan.Move == gate.Stay {
		if ungated && gate.Unsupported(u) {
			g.events.Eventf(u, nil, corev1.EventTypeWarning, reasonUngated, actionGate,
				"The provider does not support management policies any more, and does nothing until it does: was it started without?")
		}

		g.tell(ctx, u, &plan, g.ledger.stays(gk, key, &plan))

		return reconcile.Result{RequeueAfter: plan.Again}, nil
	}

	if plan.Move == gate.PutBack {
		return reconcile.Result{}, g.putBack(ctx, u, plan)
	}

	if err := g.move(ctx, u, plan); err != nil {
		return reconcile.Result{}, err
	}

	before, _ := allowance.ParseGate(u) // It was parsed for the plan.
	g.tell(ctx, u, &plan, g.ledger.moved(gk, key, before, &plan, g.now()))
	g.tellMoved(ctx, u, &plan)

	for _, w := range plan.Opens {
		if g.used != nil {
			g.used(w)
		}
	}

	return reconcile.Result{}, nil
}

// tellMoved tells of a gate that was moved.
func (g *gates) tellMoved(ctx context.Context, u *unstructured.Unstructured, plan *gate.Plan) {
	typ, reason := corev1.EventTypeNormal, "KausalityGate"+string(plan.Record.State)
	if plan.Move == gate.Ungate {
		typ, reason = corev1.EventTypeWarning, reasonUngated
	}

	g.events.Eventf(u, nil, typ, reason, actionGate, "managementPolicies %v: %s", plan.Policies, because(plan))
	log.FromContext(ctx).WithValues(given(ctx, g.policies.reader, plan.By)...).Info("Moved a gate", "move", plan.Move,
		"policies", plan.Policies, "generation", plan.Record.Generation, "why", plan.Why, "askedFor", gate.Causes(plan.By))
}

// putBack makes of the spec what was asked for.
func (g *gates) putBack(ctx context.Context, u *unstructured.Unstructured, plan gate.Plan) error {
	annotations := map[string]any{v1alpha1.AnnotationAsked: nil}

	if name := plan.ExternalName; name != nil {
		if annotations[gate.AnnotationExternalName] = *name; *name == "" {
			annotations[gate.AnnotationExternalName] = nil
		}
	}

	raw, err := json.Marshal(map[string]any{
		keyMetadata: map[string]any{keyVersion: u.GetResourceVersion(), keyAnnotations: annotations},
		"spec":      plan.Spec,
	})
	if err != nil {
		return fmt.Errorf("cannot encode what is put back of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	patch := client.RawPatch(types.MergePatchType, raw)
	if err := g.client.Patch(ctx, u.DeepCopy(), patch, client.FieldOwner(ParentManager)); err != nil {
		return fmt.Errorf("cannot put back what nobody asked for of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	g.events.Eventf(u, nil, corev1.EventTypeWarning, "KausalityPutBack", actionGate, "Put back before the gate opens: %s", plan.Why)
	log.FromContext(ctx).Info("Put back what nobody asked for", "why", plan.Why)

	return nil
}

// tell warns of what is new about a gate, once.
func (g *gates) tell(ctx context.Context, u *unstructured.Unstructured, plan *gate.Plan, n news) {
	if n.overdue {
		text := "the gate has been open for too long: " + because(plan)
		g.events.Eventf(u, nil, corev1.EventTypeWarning, "KausalityGateOverdue", actionGate, "%s", text)
		log.FromContext(ctx).WithValues(given(ctx, g.policies.reader, plan.By)...).Info("A gate is overdue",
			"why", plan.Why, "askedFor", gate.Causes(plan.By))
	}

	if n.broken {
		text := fmt.Sprintf("%s; the gate stays open until it can", plan.Broken)
		g.events.Eventf(u, nil, corev1.EventTypeWarning, "KausalityCloseWhen", actionGate, "%s", text)
		log.FromContext(ctx).Info("Cannot tell whether a change has landed", "problem", plan.Broken.Error())
	}
}

// tellUnread warns of an annotation that does not parse, once.
func (g *gates) tellUnread(u *unstructured.Unstructured, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}

	if g.ledger.unread(u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u), problem) {
		g.events.Eventf(u, nil, corev1.EventTypeWarning, "KausalityAnnotation", actionGate,
			"%s; it allows nothing until it is mended", problem)
	}
}

// move writes policies, record and allowances in one patch, which applies only
// to the version of the resource that the plan was made for.
func (g *gates) move(ctx context.Context, u *unstructured.Unstructured, plan gate.Plan) error {
	rec, err := allowance.Format(&plan.Record)
	if err != nil {
		return fmt.Errorf("cannot write the gate of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	annotations := map[string]any{v1alpha1.AnnotationGate: rec}
	if resource.Annotation(u, v1alpha1.AnnotationAllowances) != "" || len(plan.Allowances) > 0 {
		annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(plan.Allowances)
	}

	policies := make([]any, len(plan.Policies))
	for i, p := range plan.Policies {
		policies[i] = p
	}

	meta := map[string]any{"name": u.GetName(), keyVersion: u.GetResourceVersion(), keyAnnotations: annotations}
	if ns := u.GetNamespace(); ns != "" {
		meta["namespace"] = ns
	}

	patch := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": u.GetAPIVersion(),
		"kind":       u.GetKind(),
		keyMetadata:  meta,
		"spec":       map[string]any{"managementPolicies": policies},
	}}

	err = g.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.ForceOwnership, client.FieldOwner(gate.Manager))
	if err != nil {
		return fmt.Errorf("cannot move the gate of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	g.written.note(u.GetUID(), patch.GetResourceVersion(), g.now()) // The answer is read into the patch.

	return nil
}
