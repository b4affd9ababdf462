// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// Plan is what becomes of the ChangeApprovals of one PendingChange, and what is to be written.
//
// It is written in the order of First, Remember, Parents, Last: whatever of it is not written, the
// next plan goes on from there, and nothing is granted twice. What an approval comes to is
// recorded before its allowance is there, so that it is known which change that is about.
// What was made is remembered before the allowance is taken away, for nothing else shows it
// then; and an approval is done last, for nobody looks at it again after that.
type Plan struct {
	// Unconfirmed asks for the plan of an input that is Confirmed: this one leaves out what cannot be undone.
	Unconfirmed bool

	// First are the statuses of ChangeApprovals that are written before all else, and Last
	// those after.
	First, Last []Written
	// Remember is the root's list of what was made, where it is another one; nil where not.
	Remember []v1alpha1.ApprovedChange
	// Parents are those of which the allowances are others.
	Parents []ParentWrite
	// Edits are those of the root that are let through, each by one approval: it is then as if somebody
	// had made them who may. That and the memory of it are one write, so that neither is without the
	// other.
	Edits []Grant
	// Delete are ChangeApprovals that are old, and done.
	Delete []*v1alpha1.ChangeApproval
	// Again is when to look again though nothing happens; zero for never.
	Again time.Duration
	// Failed is why it is not known who may decide; nil where it is. What is, is kept.
	Failed error

	// Approvals is status.approvals of the PendingChange.
	Approvals []v1alpha1.PendingApproval
	// UnderWay is true where something that was approved is to be made yet, or it is not
	// known yet what an approval comes to.
	UnderWay bool
	// Approved and Applied are conditions of the PendingChange.
	Approved, Applied metav1.Condition
}

// Written is a status of a ChangeApproval.
type Written struct {
	Approval *v1alpha1.ChangeApproval
	Status   v1alpha1.ChangeApprovalStatus
}

// ParentWrite is what of a parent's allowances is to be others.
type ParentWrite struct {
	Ref v1alpha1.ObjectReference
	// Remove are the approvals of which all allowances are taken away.
	Remove []Grant
	// Add are those that are given.
	Add []Grant
}

// Grant is what an approval gives to a parent for one change.
type Grant struct {
	// Approval is the name of the ChangeApproval, and User who made it.
	Approval, User string
	UID            types.UID
	Digest         string
	// Decision of it; empty for Approve.
	Decision v1alpha1.ApprovalDecision
	// Ref, Field and Reason are for a person.
	Ref           v1alpha1.ObjectReference
	Field, Reason string
	// Used is true of one that is taken away because it was used.
	Used bool
	// Allowances are those that are given; none for an edit of the root, but a Hop.
	Allowances []v1alpha1.Allowance
	Hop        v1alpha1.Hop
}

const (
	// rightsEvery is how often it is asked again who may decide, while what was granted is not
	// being made.
	rightsEvery = 15 * time.Second
	// goneEvery is how often it is looked whether what is to be deleted is gone.
	goneEvery = 2 * time.Second
	// notAllowedEvery is how often it is asked again of who may not.
	notAllowedEvery = 5 * time.Minute
	// unknownAgain is when what could not be known is asked for again.
	unknownAgain = 10 * time.Second
)

// Compute plans what becomes of ChangeApprovals. Nothing of the input is modified. The error is that of [Cluster.Object].
func Compute(ctx context.Context, in Input) (Plan, error) {
	in.Now = in.Now.UTC().Truncate(time.Second)
	// What is being deleted is withdrawn, whatever else it waits for, such as the end of a deletion in the foreground.
	in.Approvals = slices.DeleteFunc(slices.Clone(in.Approvals), func(a v1alpha1.ChangeApproval) bool { return a.DeletionTimestamp != nil })

	// 1. What is there, by change?
	changes := read(in)

	// 2. What becomes of each?
	outcomes := make([]outcome, len(changes))
	seen := &objects{cluster: in.Cluster, read: map[v1alpha1.ObjectReference]Seen{}}

	for i, c := range changes {
		outcomes[i] = decide(ctx, in, c, seen)
	}

	if seen.err != nil {
		return Plan{}, seen.err
	}

	// 3. What comes of that?
	plan := sum(in, changes, outcomes)
	if seen.unknown() {
		plan.Again = soonest(plan.Again, unknownAgain)
	}

	return plan, nil
}

// sum plans what is to be written and said because of the outcomes of changes.
func sum(in Input, changes []*change, outcomes []outcome) Plan {
	// 1. The memory of the root, and what parents carry.
	plan := Plan{Remember: remember(in.Approved, changes, outcomes)}
	plan.Parents, outcomes = parentWrites(in.Parents, changes, outcomes)

	// 2. Edits of the root, a failure, what is left out, and when to look again.
	for i, out := range outcomes {
		if out.gives != nil && changes[i].edit() {
			plan.Edits = append(plan.Edits, *out.gives)
		}

		if out.failed != nil {
			plan.Failed = out.failed
		}

		plan.Unconfirmed = plan.Unconfirmed || out.unconfirmed
		plan.Again = soonest(plan.Again, out.again)
	}

	// 3. The statuses of ChangeApprovals and of the PendingChange.
	list := listDecided(changes, outcomes)
	plan = withStatuses(plan, in, list)

	return withSummary(plan, in, list, withdrawn(changes, outcomes))
}

// parentWrites plans what parents carry, each once. What does not fit is not given, and its approvals wait.
func parentWrites(parents []Parent, changes []*change, outcomes []outcome) ([]ParentWrite, []outcome) {
	outcomes = slices.Clone(outcomes)
	writes := make([]ParentWrite, len(parents))
	of := func(uid types.UID) int {
		return slices.IndexFunc(parents, func(p Parent) bool { return p.Ref.UID == uid })
	}

	for i, c := range changes {
		for _, t := range slices.Concat(c.spent, outcomes[i].takes) {
			w := &writes[of(t.grant.parent.Ref.UID)]
			w.Remove = append(w.Remove, Grant{
				Approval: t.grant.approval(), User: t.grant.allowance.Initiator, UID: t.grant.uid(), Digest: c.digest,
				Decision: t.grant.decision(), Ref: c.of.ref, Field: c.of.field, Used: t.used,
			})
		}

		if outcomes[i].gives == nil || c.edit() {
			continue
		}

		n := of(c.parentUID())
		w := ParentWrite{Remove: writes[n].Remove, Add: append(slices.Clone(writes[n].Add), *outcomes[i].gives)}

		if allowance.CheckSize(allowance.FormatList(w.Apply(parents[n].Allowances))) == nil {
			writes[n] = w
		} else {
			outcomes[i].verdicts = waitGranted(outcomes[i].verdicts, messageFull)
		}
	}

	for i := range writes {
		writes[i].Ref = parents[i].Ref
	}

	return slices.DeleteFunc(writes, func(w ParentWrite) bool { return len(w.Add)+len(w.Remove) == 0 }), outcomes
}

// remember adds what was applied because of approvals to the memory of the root; nil where that stays the same.
func remember(approved []v1alpha1.ApprovedChange, changes []*change, outcomes []outcome) []v1alpha1.ApprovedChange {
	out := slices.Clone(approved)
	add := func(name string, uid types.UID, digest string) {
		if entry := (v1alpha1.ApprovedChange{Approval: name, UID: uid, Digest: digest}); !slices.Contains(out, entry) {
			out = append(out, entry)
		}
	}

	for i, c := range changes {
		for _, t := range outcomes[i].takes {
			if t.used {
				add(t.grant.approval(), t.grant.uid(), c.digest)
			}
		}

		for j, v := range slices.Backward(c.votes) {
			if !v.over() && outcomes[i].verdicts[j].state == v1alpha1.ApprovalStateApplied {
				add(v.cha.Name, v.cha.UID, c.digest)
			}
		}
	}

	out = out[max(0, len(out)-v1alpha1.MaxApproved):]
	if slices.Equal(out, approved) {
		return nil
	}

	return out
}

// Apply is what of a parent's allowances a plan makes of those that it carries.
func (w ParentWrite) Apply(have []v1alpha1.Allowance) []v1alpha1.Allowance {
	out := slices.DeleteFunc(slices.Clone(have), func(a v1alpha1.Allowance) bool {
		return given(a) && slices.ContainsFunc(w.Remove, func(g Grant) bool { return string(g.UID) == a.Approval && g.Digest == a.Digest })
	})

	for _, g := range w.Add {
		out = append(out, g.Allowances...)
	}

	return out
}
