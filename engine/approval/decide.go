// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// decide decides what becomes of all that is about one change.
func (c *computing) decide(s *subject) {
	// 1. What is done stays so, and grants nothing, whatever a parent carries.
	for _, v := range s.votes {
		c.recall(v)
	}

	c.drop(s)

	// 2. What is made, or was, cannot be taken back. All else depends on whether it is held.
	for {
		s.begin()

		switch {
		case c.underWay(s):
		case s.entry == nil:
			c.decideNotHeld(s)
		default:
			c.decideHeld(s)
		}

		if !c.madeMeanwhile(s) {
			break
		}
	}

	// 3. What parents carry follows.
	c.commit(s)
}

// recall keeps a state that does not change, and one that was not recorded any more: the
// root remembers what was made.
func (c *computing) recall(v *vote) {
	if v.was.State.Final() {
		v.to(v.was.State, v.was.Message)
	}

	for _, a := range c.Input.Approved {
		switch {
		case v.state != "" || a.Digest != v.subject.digest || a.Approval != v.ChangeApproval.Name:
		case a.UID == v.ChangeApproval.UID:
			v.to(v1alpha1.ApprovalStateApplied, messageApplied)
		case !v.rejects() && !v.subject.carries(v): // Also of one that was made before the other was used.
			v.to(v1alpha1.ApprovalStateSuperseded, messageUsedAlready(v.ChangeApproval.Name))
		}
	}

	v.recalled = v.state != ""
}

// drop takes grants away that have ended, also where they would be used once more.
func (c *computing) drop(s *subject) {
	s.grants = slices.DeleteFunc(s.grants, func(g *grant) bool {
		made := c.remembers(g)

		switch {
		case g.vote != nil && g.vote.recalled:
			c.takeAway(g, g.vote.state == v1alpha1.ApprovalStateApplied)
		case made:
			c.takeAway(g, true)
		default:
			return false
		}

		return true
	})
}

// remembers reports whether the root remembers that a grant was used.
func (c *computing) remembers(g *grant) bool {
	return slices.ContainsFunc(c.Input.Approved, func(a v1alpha1.ApprovedChange) bool {
		return a.UID == g.uid() && a.Digest == g.allowance.Digest
	})
}

// begin forgets what was decided but for what is recalled.
func (s *subject) begin() {
	s.takes, s.gives = nil, nil

	for _, v := range s.votes {
		if !v.recalled {
			v.to("", "")
		}
	}
}

// madeMeanwhile reports whether a grant that is to be taken away is found to be in use: the
// object shows what its parent has not reported, for Crossplane was stopped before it wrote that.
// All stays as it is where nobody can know.
func (c *computing) madeMeanwhile(s *subject) bool {
	found := false

	for _, t := range s.takes {
		if t.used || t.grant.shown != unsaid || s.ref.UID == "" {
			continue
		}

		seen, known := c.see(s.ref)
		if !known {
			s.begin()

			for _, v := range s.votes {
				if !v.recalled {
					v.keep(messageNotSeen)
				}
			}

			return false
		}

		t.grant.shown = shown(s, t.grant, seen)
		found = found || t.grant.shown != unsaid
	}

	return found
}

// shown is how far a grant is by what the object shows: in use, used, or nothing that is known.
func shown(s *subject, g *grant, seen Seen) stage {
	deletion := s.field == v1alpha1.MutationDelete

	switch {
	case seen.Hidden: // It must not outlast its time for that.
		return unsaid
	case deletion && seen.Object == nil:
		return used
	case seen.Object == nil:
		return unsaid
	case deletion && resource.Deleting(seen.Object), Used(seen.Object, g.allowance):
		return applying
	default:
		return unsaid
	}
}

// commit plans what was decided for parents.
func (c *computing) commit(s *subject) {
	for _, t := range s.takes {
		c.takeAway(t.grant, t.used)

		if t.used {
			c.made(t.grant.approval(), t.grant.uid(), s.digest)
		}
	}

	for _, v := range slices.Backward(s.votes) {
		if !v.recalled && v.state == v1alpha1.ApprovalStateApplied {
			c.made(v.ChangeApproval.Name, v.ChangeApproval.UID, s.digest)
		}
	}

	for _, g := range s.gives {
		p := c.parents[s.parentUID()]
		w := c.write(p)
		w.Add = append(w.Add, g)

		if fits(p, w) {
			continue
		}

		w.Add = w.Add[:len(w.Add)-1]

		for _, v := range s.votes {
			if v.state == v1alpha1.ApprovalStateGranted {
				v.to(v1alpha1.ApprovalStateWaiting, messageFull)
			}
		}
	}
}

// underWay decides about a change that is made, or was; false where it is neither.
func (c *computing) underWay(s *subject) bool {
	i := slices.IndexFunc(s.grants, func(g *grant) bool { return c.stageOf(g) == used })
	if i >= 0 {
		c.decideUsed(s)

		return true
	}

	i = slices.IndexFunc(s.grants, func(g *grant) bool { return c.stageOf(g) == applying })
	if i < 0 {
		return false
	}

	by := s.grants[i].approval()

	for _, v := range s.votes {
		switch {
		case v.done():
		case s.grantedBefore(v):
			v.to(v1alpha1.ApprovalStateGranted, messageApplying)
		case !v.seen():
			v.to(v1alpha1.ApprovalStateSuperseded, fmt.Sprintf("it came too late: the change is being made already, by ChangeApproval %q", by))
		default:
			v.keep(fmt.Sprintf("the change is being made, by ChangeApproval %q", by))
		}
	}

	return true
}

// decideUsed ends what was used, for all who have approved it when it was let through. Others
// are looked at again once that is written.
func (c *computing) decideUsed(s *subject) {
	for _, v := range s.votes {
		switch {
		case v.done():
		case s.grantedBefore(v):
			v.to(v1alpha1.ApprovalStateApplied, messageApplied)
		default:
			v.keep(messageOther)
			c.again(0)
		}
	}

	for _, g := range s.grants {
		s.take(g, true)
	}
}

// decideHeld decides about a change that is held.
func (c *computing) decideHeld(s *subject) {
	// 1. Whose decision counts.
	t := c.tally(s)

	if t.failed != nil {
		c.plan.Failed = t.failed
		c.again(unknownAgain)
	}

	// 2. What they come to.
	enough := len(t.people) >= int(max(c.Input.Status.Required, 1)) && len(t.rejections) == 0

	for _, v := range s.votes {
		switch {
		case v.state != "":
		case t.failed != nil:
			v.keep("it is not known who may decide about the change; another attempt follows: " + t.failed.Error())
		case v.breaks():
			v.to(v1alpha1.ApprovalStateGranted, c.messageGranted(s))
		case len(t.rejections) > 0:
			v.to(v1alpha1.ApprovalStateRejected, messageRejected(t.rejections[0]))
		case enough:
			v.to(v1alpha1.ApprovalStateGranted, c.messageGranted(s))
		default:
			v.to(v1alpha1.ApprovalStateWaiting, c.messageWaiting(t))
		}
	}

	// 3. What the parent is to carry because of that.
	if t.failed != nil {
		for _, g := range s.grants { // All else stays.
			if g.vote != nil && g.vote.done() {
				s.take(g, false)
			}
		}

		return
	}

	c.carry(s, t, enough || t.broken() != nil)
}

// carry has the parent of a change that is held carry what is granted: of one approval, that of
// which it carries it already, or else that of who breaks the glass, or else the newest.
func (c *computing) carry(s *subject, t tally, enough bool) {
	var kept *grant

	for _, g := range s.grants {
		stands := g.vote != nil && g.vote.state == v1alpha1.ApprovalStateGranted && g.parent.Ref.UID == s.parentUID()

		switch {
		case enough && stands && kept == nil && whole(s, g):
			kept = g
		case g.vote == nil && !c.confirmed(): // It may be newer than the cache.
			kept = g
		default:
			s.take(g, false)
		}
	}

	if kept != nil || !enough {
		return
	}

	by := t.broken()
	if by == nil {
		by = t.approvals[0]
	}

	p := c.parents[s.parentUID()]

	switch {
	case p == nil:
		c.again(unknownAgain)
		s.wait("the parent of the object could not be read. Another attempt follows")
	case p.Gone:
		s.wait("the parent of the object is gone: nothing can be allowed")
	case c.confirmed() && s.edit():
		c.plan.Edits = append(c.plan.Edits, give(s, by, t, p))
	case c.confirmed():
		s.gives = append(s.gives, give(s, by, t, p))
	}
}

// give is what an approval gives to the parent.
func give(s *subject, v *vote, t tally, p *Parent) Grant {
	others := slices.DeleteFunc(slices.Clone(t.people), func(user string) bool { return user == v.user() })
	slices.Sort(others)

	out := Grant{
		Approval: v.ChangeApproval.Name, User: v.user(), UID: v.ChangeApproval.UID, Digest: s.digest, Ref: s.ref, Field: s.field,
		Reason:   v.ChangeApproval.Spec.Reason,
		Decision: v.decided(),
	}

	if s.edit() {
		out.Hop = hopOf(*s.entry, v.ChangeApproval, others)
	} else {
		out.Allowances = Allowances(*s.entry, v.ChangeApproval, p.Generation, others)
	}

	return out
}

// wait has approvals wait though they are enough.
func (s *subject) wait(message string) {
	for _, v := range s.votes {
		if v.state == v1alpha1.ApprovalStateGranted {
			v.to(v1alpha1.ApprovalStateWaiting, message)
		}
	}
}

// whole reports whether a parent carries all that an approval gives for a change.
func whole(s *subject, g *grant) bool {
	n := 0

	for _, a := range g.parent.Allowances {
		if a.Approval == g.allowance.Approval && a.Digest == s.digest {
			n++
		}
	}

	return n == len(Allowances(*s.entry, g.vote.ChangeApproval, 0, nil))
}

func (s *subject) parentUID() types.UID {
	if s.parent == nil {
		return ""
	}

	return s.parent.UID
}

// take notes a grant to be taken away.
func (s *subject) take(g *grant, used bool) { s.takes = append(s.takes, taken{grant: g, used: used}) }
