// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// required is the number of people that it takes.
func required(status *v1alpha1.PendingChangeStatus) int { return int(max(status.Required, 1)) }

// decideHeld decides about a change that is held.
func decideHeld(ctx context.Context, in Input, c *change, stages []v1alpha1.ApprovalUseState) outcome {
	// 1. Whose decision counts.
	t := count(ctx, in, c)
	out := outcome{failed: t.failed, again: t.again}

	// 2. What they come to.
	out.verdicts = c.verdicts(func(i int, v *vote) verdict {
		switch {
		case t.verdicts[i].state != "":
			return t.verdicts[i]
		case t.failed != nil:
			return v.keep("it is not known who may decide about the change; another attempt follows: " + t.failed.Error())
		case v.breaks(), t.enough:
			return verdict{v1alpha1.ApprovalStateGranted, messageGranted(c, stages)}
		case t.rejection != nil:
			return verdict{v1alpha1.ApprovalStateRejected, messageRejected(t.rejection)}
		default:
			return verdict{v1alpha1.ApprovalStateWaiting, messageWaiting(in.Status, len(t.people))}
		}
	})

	// 3. What the parent is to carry because of that.
	if t.failed == nil {
		return carry(c, out, t, in)
	}

	out.again = soonest(out.again, unknownAgain)

	for _, g := range c.grants { // All else stays.
		if g.vote != nil && out.verdicts[slices.Index(c.votes, g.vote)].state.Final() {
			out.takes = append(out.takes, taken{grant: g})
		}
	}

	return out
}

// carry adds to an outcome what the parent is to carry: the grant of one approval, if possible that which
// it carries already, or else that of who breaks the glass, or else the newest.
func carry(c *change, out outcome, t tally, in Input) outcome {
	by, kept := t.breaking, false
	if by == nil && t.enough {
		by = t.approval
	}

	for _, g := range c.grants {
		stands := g.vote != nil && out.verdicts[slices.Index(c.votes, g.vote)].state == v1alpha1.ApprovalStateGranted &&
			g.parent.Ref.UID == c.parentUID()

		switch {
		case by != nil && stands && !kept && g.whole(c):
			kept = true
		case g.vote == nil && !in.Confirmed: // It may be newer than the cache.
			kept, out.unconfirmed = true, true
		default:
			out.takes = append(out.takes, taken{grant: g})
		}
	}

	if kept || by == nil {
		return out
	}

	i := slices.IndexFunc(in.Parents, func(p Parent) bool { return p.Ref.UID == c.parentUID() })

	switch {
	case i < 0:
		out.verdicts = waitGranted(out.verdicts, "the parent of the object could not be read. Another attempt follows")
		out.again = soonest(out.again, unknownAgain)
	case in.Parents[i].Gone:
		out.verdicts = waitGranted(out.verdicts, "the parent of the object is gone: nothing can be allowed")
	case !in.Confirmed:
		out.unconfirmed = true
	default:
		out.gives = give(c, by, t.people, in.Parents[i].Generation)
	}

	return out
}

// waitGranted has approvals wait though they are enough.
func waitGranted(verdicts []verdict, message string) []verdict {
	out := slices.Clone(verdicts)

	for i := range out {
		if out[i].state == v1alpha1.ApprovalStateGranted {
			out[i] = verdict{v1alpha1.ApprovalStateWaiting, message}
		}
	}

	return out
}

// decideNotHeld decides about a change that nothing holds, as far as is known.
func decideNotHeld(ctx context.Context, in Input, c *change, stages []v1alpha1.ApprovalUseState, o *objects) outcome {
	out := outcome{}

	// 1. What parents carry, and of whom.
	carried, gone := false, false

	for i, g := range c.grants {
		void, absent := c.void(g, in.Confirmed, in.Now), stages[i] == v1alpha1.ApprovalAbsent
		out.unconfirmed = out.unconfirmed || g.vote == nil && !in.Confirmed

		if void || absent {
			out.takes = append(out.takes, taken{grant: g})
		}

		gone = gone || !void && absent
		carried = carried || !void && !absent
	}

	// 2. What becomes of the votes.
	out.verdicts = c.verdicts(func(_ int, v *vote) verdict {
		switch {
		case v.expired(in.Now):
			return verdict{v1alpha1.ApprovalStateExpired, messageExpired(v)}
		case v.rejects() && v.seen():
			return verdict{v1alpha1.ApprovalStateRejected, messageRejectedNotHeld}
		case carried && c.granted(v):
			return verdict{v1alpha1.ApprovalStateGranted, messageCarried}
		case gone:
			return verdict{v1alpha1.ApprovalStateSuperseded, messageSuperseded(v)}
		}

		if !in.Confirmed && !unknown(in.Status) {
			out.unconfirmed = true

			return v.keep(messageUnknown(in.Status))
		}

		not, again := notHeld(ctx, in.Status, c, o)
		out.again = soonest(out.again, again)

		if not {
			return verdict{v1alpha1.ApprovalStateSuperseded, messageSuperseded(v)}
		}

		return v.keep(messageUnknown(in.Status))
	})

	return out
}

// void reports whether a grant of a change that nothing holds is taken away whatever becomes of
// the change: its approval is withdrawn, as far as that is confirmed, has expired, or does not count any more.
func (c *change) void(g *grant, confirmed bool, now time.Time) bool {
	v := g.vote
	if v == nil {
		return confirmed
	}

	if v.expired(now) || !c.granted(v) || v.was.State == v1alpha1.ApprovalStateNotAllowed ||
		v.was.State == v1alpha1.ApprovalStateRejected {
		return true
	}

	return slices.ContainsFunc(c.votes, func(o *vote) bool {
		return o.rejects() && o.was.State == v1alpha1.ApprovalStateRejected && (!v.breaks() || o.user() == v.user())
	})
}

// notHeld reports whether a change is known not to be held, and else when to look again. A
// decision about it grants nothing then, for good.
//
// A decision is about a change that was held when it was admitted, or its user was warned. That
// the manager finds it held nowhere now may have other reasons than a revert: the
// pipeline fails, and what it would hold is not known; the list is cut; a manager that has
// begun to lead has older objects in its cache than that from which the one before made the
// list that the person saw; the change was made by an allowance that is not in the cache yet.
// So the API server is asked what the PendingChange lists there, which says of what the change
// is, and what the parent of that says there, and the object itself. Each of these is as new
// as any that the person can have seen. What is found held there is waited for: the cache
// gets to show it. A change that is held for the first time after that look is another matter:
// the person cannot have seen it.
func notHeld(ctx context.Context, status *v1alpha1.PendingChangeStatus, c *change, o *objects) (bool, time.Duration) {
	switch {
	case unknown(status):
		return false, 0
	case c.of.parent == nil:
		return true, 0 // It was held nowhere, and is not listed.
	}

	if held, known := c.heldThere(ctx, o); held || !known {
		return false, unknownAgain
	}

	return true, 0
}

// heldThere reports whether a change is held, or let through, by what the API server has of its
// parent and of itself.
func (c *change) heldThere(ctx context.Context, o *objects) (held, known bool) {
	seen, known := o.see(ctx, *c.of.parent)
	if !known || seen.Object == nil {
		return false, known && !seen.Hidden
	}

	p, err := ParentOf(*c.of.parent, seen.Object)
	if err != nil {
		return false, false
	}

	for _, a := range p.Allowances {
		if a.Digest == c.digest && slices.ContainsFunc(c.votes, func(v *vote) bool { return string(v.cha.UID) == a.Approval }) {
			return true, true
		}
	}

	if p.Reports {
		if p.List == nil || p.List.More > 0 {
			return false, false
		}

		if slices.ContainsFunc(p.List.Changes, func(e v1alpha1.HeldChange) bool { return e.Digest == c.digest }) {
			return true, true
		}
	}

	if c.of.ref.UID == "" {
		return false, true
	}

	child, known := o.see(ctx, c.of.ref)
	if !known || child.Object == nil {
		return false, known
	}

	return holds(child.Object, c.digest), true
}

// unknown reports whether it is not known what is held now.
func unknown(status *v1alpha1.PendingChangeStatus) bool {
	cur := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCurrent)

	return cur != nil && cur.Status == metav1.ConditionFalse || partial(status)
}

// partial reports whether more is held than is listed.
func partial(status *v1alpha1.PendingChangeStatus) bool {
	return int(status.Total) > len(status.Changes)
}
