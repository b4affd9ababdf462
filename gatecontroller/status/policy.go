// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// Policies reconciles the status of AllowancePolicies.
type Policies struct{ Reporter *Reporter }

// Controller makes the controller of the status of AllowancePolicies.
func (r Policies) Controller(_ cache.Cache, log logr.Logger) (controller.Controller, error) {
	return newController("allowancepolicy", r, r.Reporter.policies, log, source.TypedFunc[reconcile.Request](
		func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go r.recheck(ctx, queue)

			return nil
		}))
}

// Reconcile reports on one policy: whether it is in force, and what checking it finds,
// by the permissions that others give. Of a generation that the configuration has not
// applied yet nothing is reported: it asks for that itself.
func (r Policies) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	// 1. Read it.
	p := &v1alpha1.AllowancePolicy{}
	if err := r.Reporter.Client.Get(ctx, req.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	by := r.Reporter.applied.Load()
	if !by.includes(p) {
		return reconcile.Result{}, nil
	}

	// 2. Find what is to be reported.
	out := p.DeepCopy()
	out.Status.ObservedGeneration = p.GetGeneration()
	out.Status.TypeChecking = r.Reporter.Schemas.check(p, by.Applied.Named, by.grants)

	if err := r.Reporter.reportParams(ctx, out); err != nil {
		return reconcile.Result{}, err
	}

	cond := r.Reporter.readiness(out, by.Applied.Named, by.Applied.Unknown)
	cond.ObservedGeneration = p.GetGeneration()
	cond.Message = detailed(cond, "allowancepolicy", p)
	meta.SetStatusCondition(&out.Status.Conditions, cond)
	r.Reporter.reportUngated(out, by.Applied.Named)

	if equality.Semantic.DeepEqual(p.Status, out.Status) {
		return reconcile.Result{}, nil
	}

	// 3. Report it.
	return r.Reporter.write(ctx, v1alpha1.KindPolicy, out, p)
}

// readiness reports whether a policy is in force, and what checking it found first.
func (s *Reporter) readiness(p *v1alpha1.AllowancePolicy, kinds []kind.Served, missing []kind.Name) metav1.Condition {
	cond := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}

	if _, errs := policy.Compile(p); len(errs) > 0 {
		cond.Reason, cond.Message = v1alpha1.ReasonInvalid, errs.ToAggregate().Error()

		return cond
	}

	if unknown := kind.Among(kind.OfPolicy(p.Spec), missing); unknown != "" {
		cond.Reason, cond.Message = v1alpha1.ReasonKindUnknown, "the API server serves no kind "+unknown

		return cond
	}

	if p.Spec.EnforcementMode == v1alpha1.EnforcementModeShadow {
		cond.Status, cond.Reason = metav1.ConditionTrue, v1alpha1.ReasonShadow
		cond.Message = "the policy is in Shadow mode: it grants and forbids nothing" + firstWarning(p.Status.TypeChecking)

		return cond
	}

	if reason, message, ok := s.Rights.Condition(right.OfPolicy(p, kind.ForRights(kinds)), "its changes may be held or refused"); ok {
		cond.Reason, cond.Message = reason, message

		return cond
	}

	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionParametersReadable); c != nil && c.Status != metav1.ConditionTrue {
		cond.Reason, cond.Message = v1alpha1.ReasonParametersUnreadable, "the policy allows nothing: its parameters cannot be read: "+c.Message

		return cond
	}

	cond.Status, cond.Reason = metav1.ConditionTrue, v1alpha1.ReasonInForce
	cond.Message = "the policy is in force" + firstWarning(p.Status.TypeChecking)

	return cond
}

// firstWarning returns the first warning, and how many more there are; empty for none.
func firstWarning(warnings []v1alpha1.TypeCheckingWarning) string {
	if len(warnings) == 0 {
		return ""
	}

	out := fmt.Sprintf(", but %s: %s", warnings[0].Field, warnings[0].Warning)
	if more := len(warnings) - 1; more > 0 {
		out += fmt.Sprintf("; status.typeChecking has %d more", more)
	}

	return out
}
