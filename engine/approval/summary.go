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
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// unknown reports whether it is not known what is held now.
func (c *computing) unknown() bool {
	cur := meta.FindStatusCondition(c.Input.Status.Conditions, v1alpha1.ConditionCurrent)

	return cur != nil && cur.Status == metav1.ConditionFalse || c.cut()
}

// summarize says what all comes to, for the status of the PendingChange.
func (c *computing) summarize() {
	for _, v := range c.votes {
		c.plan.Approvals = append(c.plan.Approvals, v.pending())

		switch v.state {
		case v1alpha1.ApprovalStateGranted:
			c.plan.UnderWay = true
			c.expireAt(v)
			c.again(rightsEvery)

			if v.pending().Field == v1alpha1.MutationDelete {
				c.again(goneEvery) // Nothing else may say that the object is gone.
			}
		case v1alpha1.ApprovalStateWaiting:
			c.plan.UnderWay = c.plan.UnderWay || v.subject.entry == nil
			c.expireAt(v)
		case v1alpha1.ApprovalStateNotAllowed:
			c.expireAt(v)
		default:
		}
	}

	for _, s := range c.order {
		for _, g := range s.grants {
			if g.vote == nil && !s.takesAway(g) {
				c.plan.UnderWay = true
				c.plan.Approvals = slices.Insert(c.plan.Approvals, 0, g.withdrawn())
				c.again(rightsEvery)
			}
		}
	}

	c.plan.Approvals = c.plan.Approvals[:min(len(c.plan.Approvals), v1alpha1.MaxPendingApprovals)]
	c.plan.Approved, c.plan.Applied = c.approvedCondition(), c.appliedCondition()
	c.stamp(&c.plan.Approved, c.Input.Status.Conditions)
	c.stamp(&c.plan.Applied, c.Input.Status.Conditions)
}

// expireAt has a decision looked at when it expires.
func (c *computing) expireAt(v *vote) {
	if !v.rejects() && !c.expired(v) {
		c.again(v.expires().Sub(c.now.Time) + time.Second)
	}
}

func (v *vote) pending() v1alpha1.PendingApproval {
	out := v1alpha1.PendingApproval{
		Name: v.ChangeApproval.Name, Digest: v.subject.digest, Ref: v.was.Ref, Parent: v.was.Parent, Field: v.was.Field,
		User: v.user(), Decision: v.decided(), State: v.state, Message: v.message,
	}

	if s := v.subject; !v.seen() && (s.entry != nil || s.listed || s.grantedBefore(v)) {
		out.Ref, out.Parent, out.Field = s.ref, s.parent, s.field
	}

	return out
}

// withdrawn is what is said of an approval that was withdrawn too late.
func (g *grant) withdrawn() v1alpha1.PendingApproval {
	return v1alpha1.PendingApproval{
		Name: g.approval(), Digest: g.allowance.Digest, Ref: g.subject.ref, Parent: &g.parent.Ref, Field: g.subject.field,
		User: g.allowance.Initiator, Decision: cmp.Or(g.decision(), v1alpha1.DecisionApprove), State: v1alpha1.ApprovalStateGranted,
		Message: "it was withdrawn while the change was being applied",
	}
}

// takesAway reports whether a grant is taken away.
func (s *subject) takesAway(g *grant) bool {
	return slices.ContainsFunc(s.takes, func(t taken) bool { return t.grant == g })
}

// has reports whether a decision about a change came to a state.
func (s *subject) has(state v1alpha1.ApprovalState, matches func(*vote) bool) bool {
	return slices.ContainsFunc(s.votes, func(v *vote) bool { return v.state == state && matches(v) })
}

// approvedCondition says whether all that is held is approved.
func (c *computing) approvedCondition() metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaiting}
	granted, rejected, unstable := 0, 0, 0

	for i := range c.Input.Status.Changes {
		e := &c.Input.Status.Changes[i]
		s := c.subjects[e.Digest]

		switch {
		case e.Unstable:
			unstable++
		case s == nil:
		case s.has(v1alpha1.ApprovalStateGranted, (*vote).breaks):
			granted++
		case s.has(v1alpha1.ApprovalStateRejected, (*vote).rejects):
			rejected++
		case s.has(v1alpha1.ApprovalStateGranted, func(v *vote) bool { return !v.rejects() }):
			granted++
		}
	}

	total := int(c.Input.Status.Total)

	switch {
	case total == 0 && (c.plan.UnderWay || c.applied()):
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
		out.Message = fmt.Sprintf("%d of %d changes are approved%s", granted, total, c.needs())
	}

	return out
}

// needs says how many people it takes where that is more than one.
func (c *computing) needs() string {
	if c.Input.Status.Required <= 1 {
		return ""
	}

	return fmt.Sprintf(": each needs %d people", c.Input.Status.Required)
}

// applied reports whether anything was made since the PendingChange is there.
func (c *computing) applied() bool {
	return slices.ContainsFunc(c.votes, func(v *vote) bool {
		since := v.was.Since
		if v.was.State != v1alpha1.ApprovalStateApplied || since == nil {
			since = &c.now
		}

		return v.state == v1alpha1.ApprovalStateApplied && !since.Time.Before(c.Input.Made)
	})
}

// appliedCondition says whether it is over.
func (c *computing) appliedCondition() metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaiting}

	switch {
	case c.Input.Status.Total > 0:
		out.Message = "something is held"
	case c.plan.UnderWay:
		out.Message = "nothing is held, and approved changes are being applied"
	case c.applied():
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

// Apply is what of a parent's allowances a plan makes of those that it carries.
func (w ParentWrite) Apply(have []v1alpha1.Allowance) []v1alpha1.Allowance {
	out := slices.DeleteFunc(slices.Clone(have), func(a v1alpha1.Allowance) bool {
		return (a.Digest != "" || a.Approval != "") && slices.ContainsFunc(w.Remove, func(g Grant) bool {
			return string(g.UID) == a.Approval && g.Digest == a.Digest
		})
	})

	for _, g := range w.Add {
		out = append(out, g.Allowances...)
	}

	return out
}

// fits reports whether a parent may carry what is planned for it.
func fits(p *Parent, w *ParentWrite) bool {
	return allowance.CheckSize(allowance.FormatList(w.Apply(p.Allowances))) == nil
}
