// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// decideNotHeld decides about a change that nothing holds, as far as is known.
func (c *computing) decideNotHeld(s *subject) {
	// 1. What parents carry, and of whom.
	carried, gone := false, false

	for _, g := range s.grants {
		switch {
		case c.void(s, g):
			s.take(g, false)
		case c.stageOf(g) == absent:
			gone = true

			s.take(g, false)
		default:
			carried = true
		}
	}

	// 2. What becomes of those who have decided.
	for _, v := range s.votes {
		switch {
		case v.done():
		case c.expired(v):
			v.to(v1alpha1.ApprovalStateExpired, messageExpired(v))
		case v.rejects() && v.seen():
			v.to(v1alpha1.ApprovalStateRejected, messageRejectedNotHeld)
		case carried && s.grantedBefore(v):
			v.to(v1alpha1.ApprovalStateGranted, messageCarried)
		case gone || c.notHeld(s):
			v.to(v1alpha1.ApprovalStateSuperseded, messageSuperseded(v))
		default:
			v.keep(c.messageUnknown())
		}
	}
}

// void reports whether a grant of a change that nothing holds is taken away whatever becomes of
// the change: its approval is withdrawn, has expired, or does not count any more.
func (c *computing) void(s *subject, g *grant) bool {
	if g.vote == nil {
		return c.confirmed()
	}

	return c.expired(g.vote) || !s.grantedBefore(g.vote) || g.vote.was.State == v1alpha1.ApprovalStateNotAllowed ||
		g.vote.was.State == v1alpha1.ApprovalStateRejected ||
		slices.ContainsFunc(s.votes, func(v *vote) bool {
			return v.rejects() && v.was.State == v1alpha1.ApprovalStateRejected && (!g.vote.breaks() || v.user() == g.vote.user())
		})
}

// notHeld reports whether a change is known not to be held: what decides about it grants nothing
// then, for good.
//
// What an approval is about was held when it was admitted, or its user was warned. That
// the manager finds it held nowhere now may have other reasons than that it was taken back: the
// pipeline fails, and what it would hold is not known; the list is cut; a manager that has
// begun to lead has older objects in its cache than that from which the one before made the
// list that the person saw; the change was made by an allowance that is not in the cache yet.
// So the API server is asked what the PendingChange lists there, which says of what the change
// is, and what the parent of that says there, and the object itself. Each of these is as new
// as any that the person can have seen. What is found held there is waited for: the cache
// gets to show it. A change that is held for the first time after that look is another matter:
// the person cannot have seen it.
func (c *computing) notHeld(s *subject) bool {
	switch {
	case c.unknown(), !c.confirmed():
		return false
	case s.parent == nil:
		return true // It was held nowhere, and is not listed.
	}

	held, known := c.heldThere(s)
	if held || !known {
		c.again(unknownAgain)
	}

	return known && !held
}

// cut reports whether more is held than is listed.
func (c *computing) cut() bool { return int(c.Input.Status.Total) > len(c.Input.Status.Changes) }

// heldThere reports whether a change is held, or let through, by what the API server has of its
// parent and of itself.
func (c *computing) heldThere(s *subject) (held, known bool) {
	seen, known := c.see(*s.parent)
	if !known || seen.Object == nil {
		return false, known && !seen.Hidden
	}

	p, err := ParentOf(*s.parent, seen.Object)
	if err != nil {
		return false, false
	}

	for _, a := range p.Allowances {
		if a.Digest == s.digest && slices.ContainsFunc(s.votes, func(v *vote) bool { return string(v.ChangeApproval.UID) == a.Approval }) {
			return true, true
		}
	}

	if p.Reports {
		if p.List == nil || p.List.More > 0 {
			return false, false
		}

		if slices.ContainsFunc(p.List.Changes, func(e v1alpha1.HeldChange) bool { return e.Digest == s.digest }) {
			return true, true
		}
	}

	if s.ref.UID == "" {
		return false, true
	}

	child, known := c.see(s.ref)
	if !known || child.Object == nil {
		return false, known
	}

	return holds(child.Object, s.digest), true
}
