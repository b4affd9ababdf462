// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
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

// decided is a vote with its verdict.
type decided struct {
	change  *change
	vote    *vote
	verdict verdict
}

// listDecided lists all votes, the newest first.
func listDecided(changes []*change, outcomes []outcome) []decided {
	var out []decided

	for i, c := range changes {
		for j, v := range c.votes {
			out = append(out, decided{change: c, vote: v, verdict: outcomes[i].verdicts[j]})
		}
	}

	slices.SortFunc(out, func(a, b decided) int {
		cha := a.vote.cha
		if cha != b.vote.cha {
			return newer(cha, b.vote.cha)
		}

		return slices.Index(cha.Spec.Changes, a.change.digest) - slices.Index(cha.Spec.Changes, b.change.digest)
	})

	return out
}

// target is the recorded one of the vote. One that was not recorded is known by now, or of a change that never was held.
func (d decided) target() target {
	if c := d.change; !d.vote.seen() && (c.entry != nil || c.listed || c.granted(d.vote)) {
		return c.of
	}

	return target{ref: d.vote.was.Ref, parent: d.vote.was.Parent, field: d.vote.was.Field}
}

// record is the entry in the status of its ChangeApproval.
func (d decided) record(now time.Time) v1alpha1.ChangeDecision {
	of := d.target()
	out := v1alpha1.ChangeDecision{
		Digest: d.change.digest, Ref: of.ref, Parent: of.parent, Field: of.field,
		State: d.verdict.state, Message: d.verdict.message, Since: d.vote.was.Since,
	}

	if out.State != d.vote.was.State || out.Since == nil {
		out.Since = new(metav1.NewTime(now))
	}

	return out
}

// withStatuses adds the statuses of all ChangeApprovals to a plan, and which of them are deleted.
func withStatuses(plan Plan, in Input, list []decided) Plan {
	known, of := !unknown(in.Status), map[*v1alpha1.ChangeApproval][]decided{}
	for _, d := range list {
		of[d.vote.cha] = append(of[d.vote.cha], d)
	}

	for i := range in.Approvals {
		cha := &in.Approvals[i]

		if left := cha.CreationTimestamp.Add(v1alpha1.MaxApprovalAge).Sub(in.Now); left > 0 {
			plan.Again = soonest(plan.Again, min(max(left, time.Second), 24*time.Hour)) // A timer does not outlast the process.
		} else if !slices.ContainsFunc(of[cha], func(d decided) bool { return d.stays(known) }) {
			plan.Delete = append(plan.Delete, cha)

			continue
		}

		have := cha.Status
		add := func(to []Written, records []v1alpha1.ChangeDecision) []Written {
			status := statusOf(cha, records, in.Now)
			if equality.Semantic.DeepEqual(status, have) {
				return to
			}

			have = status

			return append(to, Written{Approval: cha, Status: status})
		}

		before, after := records(of[cha], in.Now)
		if len(before) > 0 {
			plan.First = add(plan.First, before)
		}

		plan.Last = add(plan.Last, after)
	}

	return plan
}

// stays reports whether a ChangeApproval is kept for a vote though it is as old as [v1alpha1.MaxApprovalAge]: a parent carries what the
// vote gave, or no end of it is recorded. One that rejects what is known not to be held any more is not kept.
func (d decided) stays(known bool) bool {
	was := d.vote.was.State
	rests := was == v1alpha1.ApprovalStateRejected && d.verdict.state == was && d.change.entry == nil && known

	return !was.Final() && !rests || d.change.carries(d.vote)
}

// records are the entries in the status of a ChangeApproval before all other writes and after these: what ends is recorded last.
func records(list []decided, now time.Time) (before, after []v1alpha1.ChangeDecision) {
	after = make([]v1alpha1.ChangeDecision, 0, len(list))

	for _, d := range list {
		record := d.record(now)
		after = append(after, record)

		switch was := d.vote.was; {
		case !record.State.Final() || was.State.Final():
			before = append(before, record)
		case was.State != "":
			before = append(before, was)
		}
	}

	return before, after
}

// statusOf is the status of a ChangeApproval with its condition.
func statusOf(cha *v1alpha1.ChangeApproval, list []v1alpha1.ChangeDecision, now time.Time) v1alpha1.ChangeApprovalStatus {
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
			cond.Reason = cmp.Or(cond.Reason, string(state))
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
	meta.SetStatusCondition(&out.Conditions, since(cond, out.Conditions, now))

	return out
}

// since is a condition with the time of its last transition.
func since(cond metav1.Condition, before []metav1.Condition, now time.Time) metav1.Condition {
	cond.LastTransitionTime = metav1.NewTime(now)

	if was := meta.FindStatusCondition(before, cond.Type); was != nil && was.Status == cond.Status && was.Reason == cond.Reason {
		cond.LastTransitionTime = was.LastTransitionTime
	}

	return cond
}

// leastOf orders the states by how little has come of what was asked for.
func leastOf() []v1alpha1.ApprovalState {
	return []v1alpha1.ApprovalState{
		v1alpha1.ApprovalStateNotAllowed, v1alpha1.ApprovalStateRejected, v1alpha1.ApprovalStateExpired, v1alpha1.ApprovalStateSuperseded,
		v1alpha1.ApprovalStateWaiting, v1alpha1.ApprovalStateGranted, v1alpha1.ApprovalStateApplied,
	}
}
