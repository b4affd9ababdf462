// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// actionGate is what events about gates say we did.
const actionGate = "MoveGate"

// Mover moves the gates of managed resources.
type Mover struct {
	Client  client.Client
	Events  events.EventRecorder
	Ungated *Ungated
	Opts    gate.Options
	Now     func() time.Time
	// Policies say how gates are moved that they open.
	Policies *PolicyGates
	// Openers are the windows that open gates by themselves, and used is reported
	// each that did; nil for nobody.
	Openers Openers
	Used    func(v1alpha1.GateWindow)
	Ledger  *Ledger
	// LeftBehind records what stays outside before a gate opens that is to have another external object made; nil for nobody.
	LeftBehind func(ctx context.Context, u *unstructured.Unstructured, was v1alpha1.ExternalIdentity) error
	// Gated are all managed resources of kinds of a name; nil for none.
	Gated func(ctx context.Context, kind string) ([]unstructured.Unstructured, error)
	// Failed counts expressions that fail; nil for nobody.
	Failed *judging.Expressions
}

// Reconcile makes the one move that a managed resource's gate needs now. It opens for Delete only where the resource's
// parent is kept until it is known what becomes of it.
func (g *Mover) Reconcile(ctx context.Context, u *unstructured.Unstructured, kept bool) (reconcile.Result, error) {
	gk, key := u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u)

	// 1. Gather what there is to plan by.
	opts, err := g.options(ctx, u, kept)
	if err != nil {
		return reconcile.Result{}, err
	}

	// 2. Plan, and say what is wrong.
	plan, err := gate.PlanFor(u, opts, g.Now())
	g.warnUnparsed(u, err)
	g.warnShared(u, &plan)
	g.warnDrifted(u)
	g.Failed.Count(plan.Broken)

	ungated := g.Ungated.Set(u.GroupVersionKind(), key, plan.Ungated)

	// 3. Nothing is to be moved.
	if plan.Move == gate.Stay {
		if ungated && managed.Unsupported(u) {
			g.Events.Eventf(u, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonUngated), actionGate,
				"The provider no longer supports management policies, and does nothing. Start it with --enable-management-policies")
		}

		g.warn(ctx, u, &plan, g.Ledger.stays(gk, key, &plan))

		return reconcile.Result{RequeueAfter: plan.Again}, nil
	}

	// 4. Move the gate, and record before what that leaves behind.
	if plan.LeavesBehind != nil && g.LeftBehind != nil {
		if err := g.LeftBehind(ctx, u, *plan.LeavesBehind); err != nil {
			return reconcile.Result{}, err
		}
	}

	if err := g.move(ctx, u, plan); err != nil {
		return reconcile.Result{}, err
	}

	// 5. Tell of it.
	before, _ := allowance.ParseGate(u) // It was parsed for the plan.
	g.warn(ctx, u, &plan, g.Ledger.moved(gk, key, before, &plan, g.Now()))
	g.reportMove(ctx, u, &plan)

	for _, w := range plan.Opens {
		if g.Used != nil {
			g.Used(w)
		}
	}

	return reconcile.Result{}, nil
}

// options are those that the gate of a managed resource is moved by. Kept is true where it waits for us before it goes.
func (g *Mover) options(ctx context.Context, u *unstructured.Unstructured, kept bool) (gate.Options, error) {
	out := g.Opts
	out.PolicyGate, out.WithholdDelete = g.Policies.Of(ctx), !kept

	if g.Gated != nil {
		out.Gated = func() ([]unstructured.Unstructured, error) { return g.Gated(ctx, u.GetKind()) }
	}

	var err error
	out.Windows, err = g.Openers.list(ctx)

	return out, err
}

// reportMove reports a gate that was moved.
func (g *Mover) reportMove(ctx context.Context, u *unstructured.Unstructured, plan *gate.Plan) {
	typ, reason := corev1.EventTypeNormal, string(v1alpha1.EventReasonGateClosed)

	switch {
	case plan.Move == gate.Ungate:
		typ, reason = corev1.EventTypeWarning, string(v1alpha1.EventReasonUngated)
	case plan.Record.State == v1alpha1.GateOpen:
		reason = string(v1alpha1.EventReasonGateOpen)
	}

	g.Events.Eventf(u, nil, typ, reason, actionGate, "managementPolicies %v: %s", plan.Policies, because(plan))
	log.FromContext(ctx).WithValues(judging.Given(ctx, g.Policies.Reader, plan.By)...).Info("Moved a gate", "move", plan.Move,
		"policies", plan.Policies, "generation", plan.Record.Generation, "why", plan.Why, "askedFor", gate.Causes(plan.By))
}

// warn says what is new about a gate, once.
func (g *Mover) warn(ctx context.Context, u *unstructured.Unstructured, plan *gate.Plan, n news) {
	if n.opened {
		g.reportMove(ctx, u, gate.Opened(u, plan))
	}

	if n.overdue {
		text := "the gate has been open for too long: " + because(plan)
		g.Events.Eventf(u, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonGateOverdue), actionGate, "%s", text)
		log.FromContext(ctx).WithValues(judging.Given(ctx, g.Policies.Reader, plan.By)...).Info("A gate is overdue",
			"why", plan.Why, "askedFor", gate.Causes(plan.By))
	}

	if n.broken {
		text := fmt.Sprintf("%s; the gate remains open until it can", plan.Broken)
		g.Events.Eventf(u, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonCloseWhen), actionGate, "%s", text)
		log.FromContext(ctx).Info("Cannot tell whether a change has landed", "problem", plan.Broken.Error())
	}
}

// warnShared warns that another managed resource stands for the same external object, where a gate stays closed because of that:
// both of them, once.
func (g *Mover) warnShared(u *unstructured.Unstructured, plan *gate.Plan) {
	twin := ""
	if plan.Twin != nil {
		twin = resource.Argument(plan.Twin)
	}

	if !g.Ledger.tell(u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u), topicTwin, twin) {
		return
	}

	for _, of := range [][2]*unstructured.Unstructured{{u, plan.Twin}, {plan.Twin, u}} {
		g.Events.Eventf(of[0], of[1], corev1.EventTypeWarning, string(v1alpha1.EventReasonShared), actionGate,
			"the gate opens neither for Delete nor for a window: %s", gate.Shared(of[0], of[1]))
	}
}

// warnDrifted warns that somebody has changed the external object since the gate closed, once for each set of values.
func (g *Mover) warnDrifted(u *unstructured.Unstructured) {
	gk, key := u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u)

	list := managed.DriftEntries(u, g.Opts.WithoutDrift)

	digests, text := make([]string, len(list)), ""
	for i, e := range list {
		digests[i] = e.Digest
	}

	if len(list) > 0 {
		text = decision.DescribeDrift(list[0])
	}

	if n := len(list); n > 1 {
		text += fmt.Sprintf(" and %d more", n-1)
	}

	if g.Ledger.tell(gk, key, topicDrift, strings.Join(digests, "")) {
		g.Events.Eventf(u, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonDrift), "Observe",
			"the external object was changed outside Crossplane: %s. See: kubectl kausality pending", text)
	}
}

// warnUnparsed warns of an annotation that does not parse, once.
func (g *Mover) warnUnparsed(u *unstructured.Unstructured, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}

	if g.Ledger.tell(u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u), topicUnparsed, problem) {
		g.Events.Eventf(u, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonAnnotation), actionGate,
			"%s; it allows nothing. Correct it", problem)
	}
}

// move writes policies, record and allowances in one patch, which applies only
// to the version of the resource that the plan was made for.
func (g *Mover) move(ctx context.Context, u *unstructured.Unstructured, plan gate.Plan) error {
	rec, err := allowance.FormatGate(plan.Record)
	if err != nil {
		return fmt.Errorf("cannot write the gate of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	annotations := map[string]any{v1alpha1.AnnotationGate: rec}
	if resource.Annotation(u, v1alpha1.AnnotationAllowances) != "" || len(plan.Allowances) > 0 {
		annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(plan.Allowances)
	}

	if plan.Record.Keeps {
		annotations[v1alpha1.AnnotationRelease] = v1alpha1.ReleaseOrphan
	}

	if plan.Unread {
		annotations = map[string]any{}

		for _, key := range []string{v1alpha1.AnnotationGate, v1alpha1.AnnotationAllowances} {
			if text := resource.Annotation(u, key); text != "" {
				annotations[key] = text
			}
		}
	}

	policies := make([]any, len(plan.Policies))
	for i, p := range plan.Policies {
		policies[i] = p
	}

	meta := map[string]any{
		"name": u.GetName(), "uid": string(u.GetUID()), object.KeyVersion: u.GetResourceVersion(), object.KeyAnnotations: annotations,
	}

	// Nothing comes to block a deletion that has begun.
	if object.HasFinalizer(u) || !resource.Deleting(u) {
		meta["finalizers"] = []any{v1alpha1.Finalizer}
	}

	if ns := u.GetNamespace(); ns != "" {
		meta["namespace"] = ns
	}

	patch := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion":       u.GetAPIVersion(),
		"kind":             u.GetKind(),
		object.KeyMetadata: meta,
		"spec":             map[string]any{"managementPolicies": policies},
	}}

	err = g.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.ForceOwnership, client.FieldOwner(gate.Manager))
	if err != nil {
		return fmt.Errorf("cannot move the gate of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}
