// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// vote is the decision of one ChangeApproval about one change. Once read it stays the same.
type vote struct {
	cha *v1alpha1.ChangeApproval
	// was is its record; the State is empty where there is none.
	was v1alpha1.ChangeDecision
	// final is its verdict where nothing comes of it any more; without a State where it is open.
	final verdict
}

// verdict is what a vote comes to.
type verdict struct {
	state   v1alpha1.ApprovalState
	message string
}

// newer orders the newest first. Of two of one second a rejection counts as the newer.
func newer(a, b *v1alpha1.ChangeApproval) int {
	rejects := func(c *v1alpha1.ChangeApproval) int {
		if !c.Spec.Decision.Approves() {
			return 0
		}

		return 1
	}

	return cmp.Or(
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(rejects(a), rejects(b)),
		cmp.Compare(b.Name, a.Name), cmp.Compare(a.UID, b.UID),
	)
}

// ending is the verdict that does not change any more: the recorded one, or one that was not
// recorded. The root remembers what was applied.
func (v *vote) ending(c *change, approved []v1alpha1.ApprovedChange) verdict {
	if v.was.State.Final() {
		return verdict{v.was.State, v.was.Message}
	}

	for _, a := range approved {
		switch {
		case a.Digest != c.digest || a.Approval != v.cha.Name:
		case a.UID == v.cha.UID:
			return verdict{v1alpha1.ApprovalStateApplied, messageApplied}
		case !v.rejects() && !c.carries(v): // Also of one that was made before the other was used.
			return verdict{v1alpha1.ApprovalStateSuperseded, messageUsedAlready(v.cha.Name)}
		}
	}

	return verdict{}
}

// over reports whether nothing comes of it any more, whatever happens.
func (v *vote) over() bool { return v.final.state != "" }

// keep is its recorded state; a vote without one waits.
func (v *vote) keep(message string) verdict {
	return verdict{cmp.Or(v.was.State, v1alpha1.ApprovalStateWaiting), message}
}

func (v *vote) rejects() bool { return !v.cha.Spec.Decision.Approves() }

// breaks reports whether it lets the change through alone.
func (v *vote) breaks() bool { return v.cha.Spec.Decision == v1alpha1.DecisionBreakGlass }

func (v *vote) decision() v1alpha1.ApprovalDecision {
	return cmp.Or(v.cha.Spec.Decision, v1alpha1.DecisionApprove)
}

// user is its author; empty where it does not say.
func (v *vote) user() string {
	if v.cha.Spec.Approver == nil {
		return ""
	}

	return v.cha.Spec.Approver.Username
}

// seen reports whether the change was held when the approval was looked at.
func (v *vote) seen() bool { return v.was.Field != "" }

// expires is the end of an approval. A rejection has none.
func (v *vote) expires() time.Time {
	valid := v1alpha1.DefaultValidFor
	if v.cha.Spec.ValidFor != nil {
		valid = v.cha.Spec.ValidFor.Duration
	}

	return v.cha.CreationTimestamp.Add(valid)
}

func (v *vote) expired(now time.Time) bool { return !v.rejects() && !now.Before(v.expires()) }

// tally is the count of the votes about one held change: of each person the newest.
type tally struct {
	// people who have approved it, each once.
	people []string
	// approval, breaking and rejection are the newest that count: of all approvals, of those that let it through alone,
	// and of rejections; nil for none.
	approval, breaking, rejection *vote
	// enough is true of approvals that let the change through.
	enough bool
	// verdicts of votes, in their order; without a State for those that wait for the others.
	verdicts []verdict
	// failed is why it is not known who may decide; nil where it is.
	failed error
	again  time.Duration
}

// count counts the votes about a change that is held.
func count(ctx context.Context, in Input, c *change) tally {
	t := tally{verdicts: make([]verdict, len(c.votes))}
	newest := map[string]*vote{}

	for i, v := range c.votes {
		if v.over() {
			continue
		}

		not, err := refused(ctx, in, *c.entry, v)

		switch {
		case err != nil:
			t.failed = err

			continue
		case not.state == v1alpha1.ApprovalStateNotAllowed && v.user() != "":
			t.again = notAllowedEvery
		}

		if t.verdicts[i] = not; not.state != "" {
			continue
		}

		first := cmp.Or(newest[v.user()], v)
		newest[v.user()] = first

		switch {
		case v.rejects() && !first.rejects():
			t.verdicts[i] = verdict{v1alpha1.ApprovalStateSuperseded, messageApprovedSince(first)}
		case v.rejects():
			t.rejection = cmp.Or(t.rejection, v)
			t.verdicts[i] = verdict{v1alpha1.ApprovalStateRejected, messageRejects}
		case first.rejects():
			t.verdicts[i] = verdict{v1alpha1.ApprovalStateRejected, messageRejected(first)}
		default:
			t.approval = cmp.Or(t.approval, v)
			if v.breaks() {
				t.breaking = cmp.Or(t.breaking, v)
			}

			if v == first && !slices.Contains(in.Status.Requesters, v.user()) {
				t.people = append(t.people, v.user())
			}
		}
	}

	t.enough = len(t.people) >= required(in.Status) && t.rejection == nil

	return t
}

// refused is the verdict on a vote that does not count; without a State for one that does. An error means that it is not
// known.
func refused(ctx context.Context, in Input, entry v1alpha1.HeldChange, v *vote) (verdict, error) {
	user := v.user()

	switch {
	case v.expired(in.Now):
		return verdict{v1alpha1.ApprovalStateExpired, messageExpired(v)}, nil
	case user == "":
		return verdict{v1alpha1.ApprovalStateNotAllowed, messageNobody}, nil
	case !v.rejects() && !v.breaks() && slices.Contains(in.Status.Requesters, user):
		return verdict{v1alpha1.ApprovalStateNotAllowed, messageOwn(user)}, nil
	}

	ok, reason, err := in.Cluster.MayDecide(ctx, *v.cha.Spec.Approver, v.cha.Spec.Decision, entry)
	if err != nil || ok {
		return verdict{}, err
	}

	return verdict{v1alpha1.ApprovalStateNotAllowed, reason}, nil
}
