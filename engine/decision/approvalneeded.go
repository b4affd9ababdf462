// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A policy may ask for approvals: those who may initiate by it initiate nothing alone. Their
// change of a root is stored as that of anybody else is, what would follow from it is held, and
// what is held people approve. How many have to is in the record of the edit.

// UnknownRequester stands for a user of whom nothing is known: the edit was stored while
// nobody could see whose it is.
const UnknownRequester = "unknown"

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

// unknownUser reports whether nothing is known of the user of an edit.
func unknownUser(name string) bool {
	return name == "" || name == UnknownRequester || name == unreadableUser
}

// unreadableUser stands for the user of an edit in a record that cannot be read.
const unreadableUser = "(unknown)"

// waitsForApproval reports whether a policy lets the user initiate a change, whether or not
// its conditions hold, but for the approvals that it asks for.
func (auth *authority) waitsForApproval(p *policy.Policy, c change.Change) bool {
	return p.RequiredApprovals() > 0 && p.Covers(c) && auth.mightInitiate(p) && auth.mayInitiate(p)
}

// lackingApproval says how many people have to approve for a policy to let the user initiate
// a change, after what is said of the policy already.
func lackingApproval(o objects, how manner, enforced enforced, outside outside, p *policy.Policy, c change.Change, said string) Lack {
	n := p.RequiredApprovals()
	out := Lack{Policy: p.Name(), What: policy.LackApproval, Approvals: n}

	out.Text = fmt.Sprintf("%sneeds the approval of %s", said, others(n))

	switch {
	case c.Field == v1alpha1.MutationCreate:
		out.Text += ", and a creation cannot wait for that"
	case c.Field == v1alpha1.MutationDelete:
		out.Text += ", and a deletion cannot wait for that"
	case !o.Root || guarded(how, outside):
	default:
		out.Fix = "kubectl kausality approve " + resource.Argument(o.target())
		if u := unstored(enforced); u != "" {
			out.Text, out.Fix = out.Text+u, ""
		}
	}

	return out
}

// others are so many other people, as text.
func others(n int32) string {
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

	return others(n) + " approve"
}

// unstored says which Enforcement does not let a change of a root be stored, so that nothing
// follows from it that could be approved; empty where none does.
func unstored(enforced enforced) string {
	i := slices.IndexFunc(enforced.governing, func(e *enforcement.Enforcement) bool {
		return enforcement.Strictness(actionOf(e)) >= enforcement.Strictness(v1alpha1.ActionHold)
	})
	if i < 0 {
		return ""
	}

	return fmt.Sprintf(", but Enforcement %q refuses the edit, so nothing is saved to approve", enforced.governing[i].Name())
}

// approvalsAsked is how many people have to approve what follows from an unallowed change of
// a root, whoever makes it: the most that any policy asks for which is about it and may
// select the object; zero where none asks for any. Who may not initiate the change does not
// take fewer than who may.
func (auth *authority) approvalsAsked(c change.Change) int32 {
	var out int32

	for _, p := range auth.Policies.For(auth.kind) {
		if p.RequiredApprovals() > 0 && policy.HasInitiators(p.Spec()) && p.Touches(c) && p.MaySelect(auth.input()) {
			out = max(out, p.RequiredApprovals())
		}
	}

	return out
}

// approvals is how many people have to approve what follows from an unallowed change, by the
// policies that let its user initiate it but for that; zero where none does.
func (f Finding) approvals() int32 {
	var out int32
	for _, l := range f.Lacks {
		out = max(out, l.Approvals)
	}

	return out
}
