// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Plan is what becomes of the ChangeApprovals of one PendingChange, and what is to be written.
//
// It is written in the order of First, Remember, Parents, Last: whatever of it is not written, the
// next plan goes on from there, and nothing is granted twice. What an approval comes to is
// recorded before its allowance is there, so that it is known which change that is about.
// What was made is remembered before the allowance is taken away, for nothing else shows it
// then; and an approval is done last, for nobody looks at it again after that.
type Plan struct {
	// Confirm asks for the plan of an input that is Confirmed: this one leaves out what cannot
	// be undone.
	Confirm bool
	// Reads are objects that the plan depends on, and the input has not Seen.
	Reads []v1alpha1.ObjectReference

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

// computing computes a plan.
type computing struct {
	Input Input

	plan     Plan
	now      metav1.Time
	subjects map[string]*subject
	order    []*subject
	parents  map[types.UID]*Parent
	votes    []*vote
	remember []v1alpha1.ApprovedChange
	writes   map[types.UID]*ParentWrite
}

// Compute plans what becomes of ChangeApprovals. Nothing of the input is modified.
func Compute(in Input) Plan {
	c := &computing{
		Input: in, now: metav1.NewTime(in.Now.UTC().Truncate(time.Second)),
		subjects: map[string]*subject{}, parents: map[types.UID]*Parent{}, writes: map[types.UID]*ParentWrite{},
		remember: slices.Clone(in.Approved),
	}

	// Whatever else it waits for, such as the end of a deletion in the foreground, it is withdrawn.
	c.Input.Approvals = slices.DeleteFunc(slices.Clone(in.Approvals),
		func(a v1alpha1.ChangeApproval) bool { return a.DeletionTimestamp != nil })

	// 1. What there is, by change.
	c.gather()

	// 2. What becomes of each.
	for _, s := range c.order {
		c.decide(s)
	}

	// 3. What that comes to.
	c.statuses()
	c.summarize()
	c.finish()

	return c.plan
}

// again has it looked at again no later than in some time.
func (c *computing) again(in time.Duration) {
	if in = max(in, time.Second); c.plan.Again == 0 || in < c.plan.Again {
		c.plan.Again = in
	}
}

// confirmed reports whether what cannot be undone may be planned; it asks for that where not.
func (c *computing) confirmed() bool {
	c.plan.Confirm = c.plan.Confirm || !c.Input.Confirmed

	return c.Input.Confirmed
}

// see returns an object as the API server has it; false where that is not known, or not yet.
func (c *computing) see(ref v1alpha1.ObjectReference) (Seen, bool) {
	seen, ok := c.Input.Seen[ref]
	if ok && !seen.Unknown {
		return seen, true
	}

	if ok {
		c.again(unknownAgain)
	} else if !slices.Contains(c.plan.Reads, ref) {
		c.plan.Reads = append(c.plan.Reads, ref)
	}

	return Seen{}, false
}

// write is what is to be written to a parent.
func (c *computing) write(p *Parent) *ParentWrite {
	w := c.writes[p.Ref.UID]
	if w == nil {
		w = &ParentWrite{Ref: p.Ref}
		c.writes[p.Ref.UID] = w
	}

	return w
}

// takeAway takes the allowances of a grant away from its parent.
func (c *computing) takeAway(g *grant, used bool) {
	out := g.describe()
	out.Used = used

	w := c.write(g.parent)
	if !slices.ContainsFunc(w.Remove, func(o Grant) bool { return o.UID == out.UID && o.Digest == out.Digest }) {
		w.Remove = append(w.Remove, out)
	}
}

// made remembers that a change was made because of an approval.
func (c *computing) made(name string, uid types.UID, digest string) {
	entry := v1alpha1.ApprovedChange{Approval: name, UID: uid, Digest: digest}
	if !slices.Contains(c.remember, entry) {
		c.remember = append(c.remember, entry)
	}
}

// finish brings what is to be written into order.
func (c *computing) finish() {
	if more := len(c.remember) - v1alpha1.MaxApproved; more > 0 {
		c.remember = c.remember[more:]
	}

	if !slices.Equal(c.remember, c.Input.Approved) {
		c.plan.Remember = c.remember
	}

	for i := range c.Input.Parents {
		if w := c.writes[c.Input.Parents[i].Ref.UID]; w != nil && len(w.Add)+len(w.Remove) > 0 {
			c.plan.Parents = append(c.plan.Parents, *w)
		}
	}

	slices.SortFunc(c.plan.Reads, func(a, b v1alpha1.ObjectReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}
