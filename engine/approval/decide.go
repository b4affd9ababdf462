// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// outcome is what becomes of one change.
type outcome struct {
	// verdicts of its votes, in their order.
	verdicts []verdict
	// takes are grants to be taken away.
	takes []taken
	// gives is to be given to the parent, or allows an edit of the root; nil for nothing.
	gives *Grant
	// failed is why it is not known who may decide; nil where it is.
	failed error
	// unconfirmed is true where the rest takes a confirmed input.
	unconfirmed bool
	// again is when to look again though nothing happens; zero for never.
	again time.Duration
}

// among reports whether a grant is one of those to be taken away.
func (g *grant) among(takes []taken) bool {
	return slices.ContainsFunc(takes, func(t taken) bool { return t.grant == g })
}

// decide decides about one change.
func decide(ctx context.Context, in Input, c *change, o *objects) outcome {
	// 1. Nobody takes back a change that is made, or was.
	stages := c.stages(ctx, o)
	if out, ok := underWay(c, stages); ok {
		return out
	}

	// 2. All else depends on whether it is held.
	var out outcome
	if c.entry == nil {
		out = decideNotHeld(ctx, in, c, stages, o)
	} else {
		out = decideHeld(ctx, in, c, stages)
	}

	// 3. What is to be taken away may be in use.
	return unlessInUse(ctx, c, out, o)
}

// verdicts are those of all votes about a change: the final ones, and of the others those that a function returns.
func (c *change) verdicts(of func(int, *vote) verdict) []verdict {
	out := make([]verdict, len(c.votes))
	for i, v := range c.votes {
		if out[i] = v.final; !v.over() {
			out[i] = of(i, v)
		}
	}

	return out
}

// underWay decides about a change that is made, or was; false where the stages of its grants say neither.
func underWay(c *change, stages []v1alpha1.ApprovalUseState) (outcome, bool) {
	if slices.Contains(stages, v1alpha1.ApprovalUsed) {
		return decideUsed(c), true
	}

	i := slices.Index(stages, v1alpha1.ApprovalApplying)
	if i < 0 {
		return outcome{}, false
	}

	by, out := c.grants[i].approval(), outcome{}
	if c.deletion() {
		out.again = unknownAgain // Nothing else may say that the object is gone.
	}

	out.verdicts = c.verdicts(func(_ int, v *vote) verdict {
		switch {
		case c.granted(v):
			return verdict{v1alpha1.ApprovalStateGranted, messageApplying}
		case !v.seen():
			return verdict{v1alpha1.ApprovalStateSuperseded, messageTooLate(by)}
		default:
			return v.keep(messageApplyingBy(by))
		}
	})

	return out, true
}

// decideUsed ends what was used, for all approvals that counted when the change was allowed. Others
// are looked at again once that is written.
func decideUsed(c *change) outcome {
	out := outcome{}
	out.verdicts = c.verdicts(func(_ int, v *vote) verdict {
		if c.granted(v) {
			return verdict{v1alpha1.ApprovalStateApplied, messageApplied}
		}

		out.again = time.Second

		return v.keep(messageOther)
	})

	for _, g := range c.grants {
		out.takes = append(out.takes, taken{grant: g, used: true})
	}

	return out
}

// unlessInUse is an outcome, unless a grant to be taken away is in use: the object shows then
// what its parent has not reported, for Crossplane was stopped before it wrote that. All
// stays the same where the object cannot be read.
func unlessInUse(ctx context.Context, c *change, out outcome, o *objects) outcome {
	if len(out.takes) == 0 || c.of.ref.UID == "" {
		return out
	}

	seen, known := o.see(ctx, c.of.ref)
	if !known {
		return outcome{
			verdicts: c.verdicts(func(_ int, v *vote) verdict { return v.keep(messageNotSeen) }),
			failed:   out.failed, unconfirmed: out.unconfirmed, again: out.again,
		}
	}

	stages := make([]v1alpha1.ApprovalUseState, len(c.grants))
	for i, g := range c.grants {
		if g.among(out.takes) {
			stages[i] = c.shown(g, seen)
		}
	}

	found, ok := underWay(c, stages)
	if !ok {
		return out
	}

	found.failed, found.unconfirmed, found.again = out.failed, out.unconfirmed, soonest(found.again, out.again)

	return found
}

// soonest is the shortest time of several; zero is for never.
func soonest(list ...time.Duration) time.Duration {
	list = slices.DeleteFunc(list, func(d time.Duration) bool { return d == 0 })
	if len(list) == 0 {
		return 0
	}

	return slices.Min(list)
}
