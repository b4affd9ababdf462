// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/check"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Bindings reconciles the status of AllowanceBindings, by what is reported of their
// policies.
type Bindings struct {
	Reporter *Reporter

	// Initiates reports whether a user, by name, may initiate by a binding at all.
	Initiates func(user string) bool
	// GuardedSince is when the guard was made that asks who makes a binding for the verb bind;
	// false where that is not known yet.
	GuardedSince func() (time.Time, bool)
}

// guardSoon is when a binding is looked at again while it is not known since when the guard is
// there.
const guardSoon = 5 * time.Second

// guardTakes is how long the API server may take to go by a guard.
const guardTakes = 10 * time.Second

// Controller makes the controller of the status of AllowanceBindings.
func (r Bindings) Controller(c cache.Cache, log logr.Logger) (controller.Controller, error) {
	return object.NewController("allowancebinding", r, controller.Options{Logger: log},
		source.Kind(c, client.Object(&v1alpha1.AllowanceBinding{}), &handler.EnqueueRequestForObject{},
			object.SpecChanged()),
		source.Kind(c, client.Object(&v1alpha1.AllowancePolicy{}), handler.EnqueueRequestsFromMapFunc(r.of), predicate.Predicate(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool { return reported(e.ObjectOld) != reported(e.ObjectNew) },
		})))
}

// report is what is reported of a policy that matters to its bindings.
type report struct {
	generation, observed int64
	reason               string
}

func reported(obj client.Object) report {
	p, ok := obj.(*v1alpha1.AllowancePolicy)
	if !ok {
		return report{}
	}

	out := report{generation: p.GetGeneration()}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		out.reason, out.observed = c.Reason, c.ObservedGeneration
	}

	return out
}

// of are the bindings of a policy.
func (r Bindings) of(ctx context.Context, obj client.Object) []reconcile.Request {
	list := &v1alpha1.AllowanceBindingList{}
	if err := r.Reporter.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache that brought the policy has no other error than that it ends.
	}

	var out []reconcile.Request

	for i := range list.Items {
		if b := &list.Items[i]; b.Spec.Policy == obj.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}

	return out
}

// Reconcile reports on one binding: whether it is in force, and what checking it finds.
func (r Bindings) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	// 1. Read it and its policy.
	b := &v1alpha1.AllowanceBinding{}
	if err := r.Reporter.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	p := &v1alpha1.AllowancePolicy{}
	if err := client.IgnoreNotFound(r.Reporter.Client.Get(ctx, client.ObjectKey{Name: b.Spec.Policy}, p)); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot get AllowancePolicy %q: %w", b.Spec.Policy, err)
	}

	since, ok := r.GuardedSince()
	if !ok {
		return reconcile.Result{RequeueAfter: guardSoon}, nil
	}

	// 2. Find what is to be reported.
	out := b.DeepCopy()
	out.Status.ObservedGeneration = b.GetGeneration()
	out.Status.TypeChecking = append(unguarded(b, since), r.check(b, p)...)
	cond := bindingReadiness(out, p)
	cond.ObservedGeneration = b.GetGeneration()
	cond.Message = detailed(cond, "allowancebinding", b)
	meta.SetStatusCondition(&out.Status.Conditions, cond)

	if equality.Semantic.DeepEqual(b.Status, out.Status) {
		return reconcile.Result{}, nil
	}

	// 3. Report it.
	return r.Reporter.write(ctx, v1alpha1.KindBinding, out, b)
}

// unguarded warns of a binding that was made while nobody was asked for the verb bind.
func unguarded(b *v1alpha1.AllowanceBinding, since time.Time) []v1alpha1.TypeCheckingWarning {
	if b.GetCreationTimestamp().After(since.Add(guardTakes)) {
		return nil
	}

	return []v1alpha1.TypeCheckingWarning{{Field: "metadata.creationTimestamp", Warning: fmt.Sprintf(
		"created before %s was in force, without a check of verb %s. Create it again, or check who created it",
		v1alpha1.NameBindGuard, v1alpha1.VerbBind)}}
}

// bindingReadiness reports whether a binding is in force. A policy without a name is one
// that is not there.
func bindingReadiness(b *v1alpha1.AllowanceBinding, p *v1alpha1.AllowancePolicy) metav1.Condition {
	cond := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}

	if _, errs := policy.CompileBinding(b); len(errs) > 0 {
		cond.Reason, cond.Message = v1alpha1.ReasonInvalid, errs.ToAggregate().Error()

		return cond
	}

	if cond.Reason, cond.Message = check.Unbound(b, p); cond.Reason != "" {
		return cond
	}

	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)

	switch name := b.Spec.Policy; {
	case ready == nil || ready.ObservedGeneration != p.GetGeneration():
		cond.Reason, cond.Message = v1alpha1.ReasonPolicyNotReady, fmt.Sprintf("AllowancePolicy %q is not reported on yet", name)
	case ready.Status != metav1.ConditionTrue:
		cond.Reason = v1alpha1.ReasonPolicyNotReady
		cond.Message = fmt.Sprintf("AllowancePolicy %q is not in force (%s); kubectl describe it to see why", name, ready.Reason)
	case ready.Reason == v1alpha1.ReasonShadow:
		cond.Status, cond.Reason = metav1.ConditionTrue, v1alpha1.ReasonShadow
		cond.Message = fmt.Sprintf("AllowancePolicy %q is in Shadow mode, and so is its binding", name) + firstWarning(b.Status.TypeChecking)
	default:
		cond.Status, cond.Reason = metav1.ConditionTrue, v1alpha1.ReasonInForce
		cond.Message = "the binding is in force" + firstWarning(b.Status.TypeChecking)
	}

	return cond
}

// check returns what is wrong with a binding that does not keep it from being used.
func (r Bindings) check(in *v1alpha1.AllowanceBinding, p *v1alpha1.AllowancePolicy) []v1alpha1.TypeCheckingWarning {
	var kinds []kind.Served
	if by := r.Reporter.applied.Load(); by != nil {
		kinds = by.Applied.Named
	}

	return typecheck.Warnings(typecheck.Binding(in, p, kinds, r.Reporter.Schemas.of, typecheck.NeverByBinding(r.Initiates)))
}
