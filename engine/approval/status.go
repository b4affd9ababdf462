// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// statuses plans the statuses of all ChangeApprovals, and which of them are deleted.
func (c *computing) statuses() {
	of := map[*v1alpha1.ChangeApproval][]*vote{}
	for _, v := range c.votes {
		of[v.ChangeApproval] = append(of[v.ChangeApproval], v)
	}

	for i := range c.Input.Approvals {
		cha := &c.Input.Approvals[i]
		votes := of[cha]

		if c.old(cha, votes) {
			c.plan.Delete = append(c.plan.Delete, cha)

			continue
		}

		c.statusOf(cha, votes)
	}
}

// statusOf plans the status of one.
func (c *computing) statusOf(cha *v1alpha1.ChangeApproval, votes []*vote) {
	var first []v1alpha1.ChangeDecision

	last := make([]v1alpha1.ChangeDecision, 0, len(votes))

	for _, v := range votes {
		last = append(last, c.decision(v))

		switch {
		case !v.done() || v.was.State.Final():
			first = append(first, c.decision(v))
		case v.was.State != "":
			first = append(first, v.was)
		}
	}

	have := &cha.Status

	if len(first) > 0 {
		if status := c.written(cha, first); !equality.Semantic.DeepEqual(status, cha.Status) {
			c.plan.First = append(c.plan.First, Written{Approval: cha, Status: status})
			have = &status
		}
	}

	if status := c.written(cha, last); !equality.Semantic.DeepEqual(status, *have) {
		c.plan.Last = append(c.plan.Last, Written{Approval: cha, Status: status})
	}
}

// decision is what is recorded of a vote.
func (c *computing) decision(v *vote) v1alpha1.ChangeDecision {
	out := v1alpha1.ChangeDecision{
		Digest: v.subject.digest, Ref: v.was.Ref, Parent: v.was.Parent, Field: v.was.Field,
		State: v.state, Message: v.message, Since: v.was.Since,
	}

	if s := v.subject; !v.seen() && (s.entry != nil || s.listed || s.grantedBefore(v)) {
		out.Ref, out.Parent, out.Field = s.ref, s.parent, s.field
	}

	if v.state != v.was.State || out.Since == nil {
		out.Since = c.now.DeepCopy()
	}

	return out
}

// written is a status of a ChangeApproval with its condition.
func (c *computing) written(cha *v1alpha1.ChangeApproval, list []v1alpha1.ChangeDecision) v1alpha1.ChangeApprovalStatus {
	out := *cha.Status.DeepCopy()
	out.Changes = list

	cond := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, ObservedGeneration: cha.Generation}
	counts := map[v1alpha1.ApprovalState]int{}

	for _, d := range list {
		counts[d.State]++
	}

	var said []string

	for _, state := range leastOf() {
		if n := counts[state]; n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, state))

			if cond.Reason == "" {
				cond.Reason = string(state)
			}
		}
	}

	switch {
	case len(list) == 0:
		cond.Reason = string(v1alpha1.ApprovalStateSuperseded)
		cond.Message = "it names no changes: Kausality's webhook was not asked. Delete it, and create it again"
	case len(list) == 1:
		cond.Message = list[0].Message
	default:
		cond.Message = fmt.Sprintf("of %d changes: %s", len(list), strings.Join(said, ", "))
	}

	if counts[v1alpha1.ApprovalStateApplied] == len(list) && len(list) > 0 {
		cond.Status = metav1.ConditionTrue
	}

	cond.Message = message.Cut(cond.Message, message.Most)
	c.stamp(&cond, out.Conditions)
	meta.SetStatusCondition(&out.Conditions, cond)

	return out
}

// stamp says since when a condition is as it is.
func (c *computing) stamp(cond *metav1.Condition, before []metav1.Condition) {
	cond.LastTransitionTime = c.now

	if was := meta.FindStatusCondition(before, cond.Type); was != nil && was.Status == cond.Status && was.Reason == cond.Reason {
		cond.LastTransitionTime = was.LastTransitionTime
	}
}

// old reports whether a ChangeApproval is to be deleted: it has stayed for its time, and
// nothing comes of it any more. A rejection stays for as long as what it rejects is held.
func (c *computing) old(cha *v1alpha1.ChangeApproval, votes []*vote) bool {
	left := cha.CreationTimestamp.Add(v1alpha1.MaxApprovalAge).Sub(c.now.Time)
	if left > 0 {
		c.again(min(left, 24*time.Hour)) // A timer does not outlast the process.

		return false
	}

	return !slices.ContainsFunc(votes, func(v *vote) bool {
		s := v.subject
		rests := v.was.State == v1alpha1.ApprovalStateRejected && v.state == v.was.State && s.entry == nil && !c.unknown()

		return !v.was.State.Final() && !rests || slices.ContainsFunc(s.grants, func(g *grant) bool { return g.vote == v })
	})
}
