// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/rights"
)

// Reporter writes the status of policies and Enforcements, and the labels that
// functions ask for them by.
type Reporter struct {
	Client  client.Client
	Schemas *Schemas
	// Rights are those that are missing.
	Rights *rights.Rights
	// Ungated are the resources whose providers support no gates.
	Ungated *gates.Ungated
}

// ReportAll writes the conditions of policies and Enforcements. One whose status
// cannot be written keeps no other from being told of. What is written is given back
// in what is wanted, so that it is not written again; what is refused is not, so that
// the next try writes it.
func (s *Reporter) ReportAll(ctx context.Context, want admission.Config, served, kinds []kind.Served, missing []kind.Name) error {
	errs := make([]error, 0, len(want.Policies)+len(want.Enforcements))

	given := grants(want)

	for i := range want.Policies {
		p := want.Policies[i].DeepCopy()

		err := s.report(ctx, p, kinds, missing, given.besides(&want.Policies[i]))
		if err == nil {
			want.Policies[i].Status = p.Status
		}

		errs = append(errs, err)
	}

	for i := range want.Enforcements {
		e := want.Enforcements[i].DeepCopy()

		err := s.reportEnforcement(ctx, e, served)
		if err == nil {
			want.Enforcements[i].Status = e.Status
		}

		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// report writes a policy's Ready condition and what checking it finds, by the
// permissions that others give.
func (s *Reporter) report(
	ctx context.Context, p *v1alpha1.AllowancePolicy, kinds []kind.Served, missing []kind.Name, given []v1alpha1.Permission,
) error {
	was := p.DeepCopy()
	p.Status.ObservedGeneration = p.GetGeneration()
	p.Status.TypeChecking = s.Schemas.check(p, kinds, given)
	cond := s.readiness(p, kinds, missing)
	cond.ObservedGeneration = p.GetGeneration()
	meta.SetStatusCondition(&p.Status.Conditions, cond)
	s.reportUngated(p, kinds)

	if equality.Semantic.DeepEqual(was.Status, p.Status) {
		return nil
	}

	err := client.IgnoreNotFound(s.Client.Status().Patch(ctx, p, client.MergeFrom(was)))
	if err != nil {
		return fmt.Errorf("cannot write the status of AllowancePolicy %q: %w", p.GetName(), err)
	}

	return nil
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

	if reason, message, ok := s.Rights.Condition(right.OfPolicy(p, kind.ForRights(kinds)), "what it allows may be held or refused"); ok {
		cond.Reason, cond.Message = reason, message

		return cond
	}

	cond.Status, cond.Reason = metav1.ConditionTrue, v1alpha1.ReasonInForce
	cond.Message = "the policy is in force" + firstWarning(p.Status.TypeChecking)

	return cond
}

// firstWarning tells of the first warning, and how many more there are; empty for none.
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
