// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// Enforcements reconciles the status of Enforcements.
type Enforcements struct{ Reporter *Reporter }

// Controller makes the controller of the status of Enforcements.
func (r Enforcements) Controller(_ cache.Cache, log logr.Logger) (controller.Controller, error) {
	return newController("enforcement", r, r.Reporter.enforcements, log)
}

// Reconcile reports whether one Enforcement is in force, and what checking it finds. Of
// a generation that the configuration has not applied yet nothing is reported: it asks
// for that itself.
func (r Enforcements) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	// 1. Read it.
	e := &v1alpha1.Enforcement{}
	if err := r.Reporter.Client.Get(ctx, req.NamespacedName, e); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	by := r.Reporter.applied.Load()
	if !by.includes(e) {
		return reconcile.Result{}, nil
	}

	// 2. Find what is to be reported.
	out := e.DeepCopy()
	out.Status.TypeChecking = r.Reporter.Schemas.checkEnforcement(e, by.Applied.Listed)
	cond := r.Reporter.inForce(out, by.Applied.Listed)
	cond.ObservedGeneration = e.GetGeneration()
	out.Status.ObservedGeneration = e.GetGeneration()
	out.Status.Resources = misnamed(e, by.Applied.Listed)
	cond.Message = detailed(cond, "enforcement", e)
	meta.SetStatusCondition(&out.Status.Conditions, cond)

	if equality.Semantic.DeepEqual(e.Status, out.Status) {
		return reconcile.Result{}, nil
	}

	// 3. Report it.
	return r.Reporter.write(ctx, v1alpha1.KindEnforcement, out, e)
}

// misnamed are the kinds that an Enforcement is about by a name that they do not
// suggest, as many as a status holds.
func misnamed(in *v1alpha1.Enforcement, served []kind.Served) []v1alpha1.NamedResource {
	e, errs := enforcement.Compile(in)
	if len(errs) > 0 {
		return nil // It excepts nobody.
	}

	const maxResources = 256

	var out []v1alpha1.NamedResource

	for _, k := range served {
		if len(out) < maxResources && e.Misnamed(k.GVK.GroupKind(), k.Resource) {
			out = append(out, v1alpha1.NamedResource{Group: k.GVK.Group, Kind: k.GVK.Kind, Resource: k.Resource})
		}
	}

	return out
}

// inForce is whether an Enforcement is in force, and what comes of rights that the manager lacks, as condition Ready.
func (s *Reporter) inForce(in *v1alpha1.Enforcement, served []kind.Served) metav1.Condition {
	cond := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}

	if e, errs := enforcement.Compile(in); len(errs) > 0 {
		cond.Reason, cond.Message = v1alpha1.ReasonInvalid, errs.ToAggregate().Error()

		if e.Refuses() {
			cond.Message += "; until that is corrected every change that it is about is refused, for its failurePolicy is Fail"
		}

		return cond
	}

	if unknown := unserved(in.Spec.Match.ResourceRules, served); len(unknown) > 0 {
		cond.Reason = v1alpha1.ReasonKindUnknown
		cond.Message = "the API server serves nothing that could be governed as " + strings.Join(unknown, ", ")

		return cond
	}

	needs := right.OfEnforcement(in, kind.ForRights(served))
	if reason, message, ok := s.Rights.Condition(needs, "its failurePolicy answers for these kinds"); ok {
		cond.Reason, cond.Message = reason, message

		return cond
	}

	cond.Status, cond.Reason = metav1.ConditionTrue, v1alpha1.ReasonInForce
	cond.Message = "the Enforcement is in force" + firstWarning(in.Status.TypeChecking)

	return cond
}

// unserved are the resources of rules, as RESOURCE.GROUP, that nothing serves.
func unserved(list []v1alpha1.ResourceRule, served []kind.Served) []string {
	var out []string

	for _, rule := range list {
		for _, group := range rule.APIGroups {
			for _, res := range rule.Resources {
				only := []v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{res}}}
				if !anyOf(only, served) {
					out = append(out, schema.GroupResource{Group: group, Resource: res}.String())
				}
			}
		}
	}

	return out
}

// anyOf reports whether rules are about any of some kinds.
func anyOf(list []v1alpha1.ResourceRule, served []kind.Served) bool {
	for _, k := range served {
		if enforcement.Matches(list, k.GroupResource()) {
			return true
		}
	}

	return false
}
