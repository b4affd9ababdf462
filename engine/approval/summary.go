// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// withSummary adds to a plan what it comes to, for the status of the PendingChange.
func withSummary(plan Plan, in Input, list []decided, withdrawn []v1alpha1.PendingApproval) Plan {
	plan.Approvals = withdrawn

	if len(withdrawn) > 0 {
		plan.UnderWay = true
		plan.Again = soonest(plan.Again, rightsEvery)
	}

	for _, d := range list {
		plan.Approvals = append(plan.Approvals, d.pending())
		plan.Again = soonest(plan.Again, d.again(in.Now))

		switch d.verdict.state {
		case v1alpha1.ApprovalStateGranted:
			plan.UnderWay = true
		case v1alpha1.ApprovalStateWaiting: // It is not known yet what the approval comes to.
			plan.UnderWay = plan.UnderWay || d.change.entry == nil
		default:
		}
	}

	plan.Approvals = plan.Approvals[:min(len(plan.Approvals), v1alpha1.MaxPendingApprovals)]
	applied := anyApplied(in, list)
	plan.Approved = since(approvedCondition(in.Status, list, plan.UnderWay || applied), in.Status.Conditions, in.Now)
	plan.Applied = since(appliedCondition(in.Status, plan.UnderWay, applied), in.Status.Conditions, in.Now)

	return plan
}

// pending is the entry of a vote in the status of the PendingChange, whatever came of it. Where the change is not held any more, what
// it is of is as parents carry it, or as it was recorded. Its Parent is shared with the input.
func (d decided) pending() v1alpha1.PendingApproval {
	of := d.target()

	return v1alpha1.PendingApproval{
		Name: d.vote.cha.Name, Digest: d.change.digest, Ref: of.ref, Parent: of.parent, Field: of.field,
		User: d.vote.user(), Decision: d.vote.decision(), State: d.verdict.state, Message: d.verdict.message,
	}
}

// again is when to look again at a vote though nothing happens; zero for never.
func (d decided) again(now time.Time) time.Duration {
	var expiry time.Duration
	if !d.vote.rejects() && !d.vote.expired(now) {
		expiry = d.vote.expires().Sub(now) + time.Second
	}

	switch d.verdict.state {
	case v1alpha1.ApprovalStateGranted:
		if d.target().field == v1alpha1.MutationDelete {
			return soonest(goneEvery, expiry) // Nothing else may say that the object is gone.
		}

		return soonest(rightsEvery, expiry)
	case v1alpha1.ApprovalStateWaiting, v1alpha1.ApprovalStateNotAllowed:
		return expiry
	default:
		return 0
	}
}

// withdrawn are the approvals that were withdrawn too late: parents carry yet what they gave.
func withdrawn(changes []*change, outcomes []outcome) []v1alpha1.PendingApproval {
	var out []v1alpha1.PendingApproval

	for i, c := range changes {
		for _, g := range c.grants {
			if g.vote != nil || g.among(outcomes[i].takes) {
				continue
			}

			out = append(out, v1alpha1.PendingApproval{
				Name: g.approval(), Digest: c.digest, Ref: c.of.ref, Parent: &g.parent.Ref, Field: c.of.field,
				User: g.allowance.Initiator, Decision: cmp.Or(g.decision(), v1alpha1.DecisionApprove), State: v1alpha1.ApprovalStateGranted,
				Message: "it was withdrawn while the change was being applied",
			})
		}
	}

	slices.Reverse(out)

	return out
}

// anyApplied reports whether anything was applied since the PendingChange was created.
func anyApplied(in Input, list []decided) bool {
	return slices.ContainsFunc(list, func(d decided) bool {
		return d.verdict.state == v1alpha1.ApprovalStateApplied && !d.record(in.Now).Since.Time.Before(in.Made)
	})
}

// approvedCondition says whether all that is held is approved. Begun is true where something approved is applied, or is to be.
func approvedCondition(status *v1alpha1.PendingChangeStatus, list []decided, begun bool) metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaiting}
	total, granted, rejected, unstable := int(status.Total), 0, 0, 0

	for _, e := range status.Changes {
		has := func(state v1alpha1.ApprovalState, matches func(*vote) bool) bool {
			return slices.ContainsFunc(list, func(d decided) bool {
				return d.change.digest == e.Digest && d.verdict.state == state && matches(d.vote)
			})
		}

		switch {
		case e.Unstable:
			unstable++
		case has(v1alpha1.ApprovalStateGranted, (*vote).breaks):
			granted++
		case has(v1alpha1.ApprovalStateRejected, (*vote).rejects):
			rejected++
		case has(v1alpha1.ApprovalStateGranted, func(v *vote) bool { return !v.rejects() }):
			granted++
		}
	}

	switch {
	case total == 0 && begun:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, v1alpha1.ReasonApproved, "all held changes were approved"
	case total == 0:
		out.Message = "nothing is held"
	case rejected > 0:
		out.Reason, out.Message = v1alpha1.ReasonRejected, fmt.Sprintf("%d of %d changes are rejected: see status.approvals", rejected, total)
	case unstable > 0:
		out.Reason = v1alpha1.ReasonUnstable
		out.Message = fmt.Sprintf("%d of %d changes have another desired value each time, and cannot be approved. "+
			"Make the value stable in the Composition, or add an AllowancePolicy", unstable, total)
	case granted == total:
		out.Status, out.Reason = metav1.ConditionTrue, v1alpha1.ReasonApproved
		out.Message = fmt.Sprintf("%d of %d changes are approved", granted, total)
	default:
		out.Message = fmt.Sprintf("%d of %d changes are approved", granted, total)
		if status.Required > 1 {
			out.Message += fmt.Sprintf(": each needs %d people", status.Required)
		}
	}

	return out
}

// appliedCondition says whether it is over.
func appliedCondition(status *v1alpha1.PendingChangeStatus, underWay, applied bool) metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaiting}

	switch {
	case status.Total > 0:
		out.Message = "something is held"
	case underWay:
		out.Message = "nothing is held, and approved changes are being applied"
	case applied:
		out.Status, out.Reason = metav1.ConditionTrue, v1alpha1.ReasonApplied
		out.Message = "all approved changes are applied, and nothing is held"
	default:
		out.Reason, out.Message = v1alpha1.ReasonTakenBack, "the changes are no longer desired"
	}

	return out
}

// Complete completes the status of the PendingChange.
func (p Plan) Complete(status *v1alpha1.PendingChangeStatus) {
	status.Approvals = p.Approvals
	meta.SetStatusCondition(&status.Conditions, p.Approved)
	meta.SetStatusCondition(&status.Conditions, p.Applied)

	for _, c := range []metav1.Condition{p.Approved, p.Applied} { // Their times are known.
		meta.FindStatusCondition(status.Conditions, c.Type).LastTransitionTime = c.LastTransitionTime
	}

	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })

	if p.UnderWay {
		status.FinishedAt = nil
	}
}
