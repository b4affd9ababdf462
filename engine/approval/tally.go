// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// tally is what people have decided about one change.
type tally struct {
	// people who have approved it, each once, and approvals of theirs, the newest first.
	people    []string
	approvals []*vote
	// breaking are those of the approvals that let it through alone, the newest first.
	breaking []*vote
	// rejections that stand, the newest first.
	rejections []*vote
	// failed is why it is not known who may decide; nil where it is.
	failed error
}

// broken is the approval that lets the change through alone; nil for none.
func (t tally) broken() *vote {
	if len(t.breaking) == 0 {
		return nil
	}

	return t.breaking[0]
}

// tally counts the decisions about a change that is held: of each person the newest. It says what
// becomes of those that do not count.
func (c *computing) tally(s *subject) tally {
	var t tally

	newest := map[string]*vote{}

	for _, v := range s.votes {
		if v.done() || !c.counts(s, v, &t) {
			continue
		}

		first := newest[v.user()]
		if first == nil {
			newest[v.user()], first = v, v
		}

		switch {
		case v.rejects() && !first.rejects():
			v.to(v1alpha1.ApprovalStateSuperseded, fmt.Sprintf("its user has approved the change since, by ChangeApproval %q",
				first.ChangeApproval.Name))
		case v.rejects():
			t.rejections = append(t.rejections, v)
			v.to(v1alpha1.ApprovalStateRejected, messageRejects)
		case first.rejects():
			v.to(v1alpha1.ApprovalStateRejected, messageRejected(first))
		default:
			t.approvals = append(t.approvals, v)

			if v.breaks() {
				t.breaking = append(t.breaking, v)
			}

			if v == first && !slices.Contains(c.Input.Status.Requesters, v.user()) {
				t.people = append(t.people, v.user())
			}
		}
	}

	return t
}

// counts reports whether a decision counts, and says what becomes of one that does not.
func (c *computing) counts(s *subject, v *vote, t *tally) bool {
	user := v.user()

	switch {
	case c.expired(v):
		v.to(v1alpha1.ApprovalStateExpired, messageExpired(v))

		return false
	case user == "":
		v.to(v1alpha1.ApprovalStateNotAllowed, messageNobody)

		return false
	case !v.rejects() && !v.breaks() && slices.Contains(c.Input.Status.Requesters, user):
		v.to(v1alpha1.ApprovalStateNotAllowed, messageOwn(user))
		c.again(notAllowedEvery)

		return false
	}

	ok, reason, err := c.Input.MayDecide(*v.ChangeApproval.Spec.Approver, v.ChangeApproval.Spec.Decision, *s.entry)

	switch {
	case err != nil:
		t.failed = err

		return false
	case !ok:
		v.to(v1alpha1.ApprovalStateNotAllowed, reason)
		c.again(notAllowedEvery)

		return false
	default:
		return true
	}
}
