// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"fmt"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// ApprovalsAsked is how many people have to approve what follows from an unallowed change of
// a root, whoever makes it: the most that any policy asks for which is about it and may
// select the object; zero where none asks for any. Who may not initiate the change does not
// take fewer than who may.
func (auth *Authority) ApprovalsAsked(c change.Change) int32 {
	var out int32

	for _, p := range auth.Policies.For(auth.kind) {
		if p.RequiredApprovals() > 0 && policy.HasInitiators(p.Spec()) && p.Touches(c) && p.MaySelect(auth.Input()) {
			out = max(out, p.RequiredApprovals())
		}
	}

	return out
}

// WaitsForApproval reports whether a policy lets the user initiate a change, whether or not
// its conditions hold, but for the approvals that it asks for.
func (auth *Authority) WaitsForApproval(p *policy.Policy, c change.Change) bool {
	return p.RequiredApprovals() > 0 && p.Covers(c) && auth.MightInitiate(p) && auth.MayInitiate(p)
}

// RequiredApprovals is how many people have to approve what follows from the edits of a root:
// one at least, and as many as the edit does that asks for the most. One of which nobody knows
// whose it is takes one more, for who approves may be who made it.
func RequiredApprovals(edits []v1alpha1.HeldChange) int32 {
	out := int32(1)

	for _, e := range edits {
		n := max(e.Stored.Approvals, 1)
		if unknownUser(allowance.Author(e)) {
			n++
		}

		out = max(out, n)
	}

	return out
}

// UnknownRequester stands for a user of whom nothing is known: the edit was stored while
// nobody could see whose it is.
const UnknownRequester = "unknown"

// unknownUser reports whether nothing is known of the user of an edit.
func unknownUser(name string) bool {
	return name == "" || name == UnknownRequester || name == UnreadableUser
}

// UnreadableUser stands for the user of an edit in a record that cannot be read.
const UnreadableUser = "(unknown)"

// Others are so many other people, as text.
func Others(n int32) string {
	if n == 1 {
		return "another person"
	}

	return fmt.Sprintf("%d other people", n)
}

// OthersApprove says that so many other people approve, for a person.
func OthersApprove(n int32) string {
	if n == 1 {
		return "another person approves"
	}

	return Others(n) + " approve"
}

// OnlySome says who may do something that a user may not, both as text.
func OnlySome(who, user string) string {
	if who == policy.Nobody {
		return "no one may"
	}

	return fmt.Sprintf("only %s may, not %s", who, user)
}
