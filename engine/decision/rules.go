// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// A rule allows changes.
type rule struct {
	// name of it, as findings, metrics and audit annotations have it.
	name Rule
	// contract is which changes it allows, in one sentence.
	contract string
	// allows returns the finding on a change that it allows.
	allows func(*inputs, change.Change) (Finding, bool)
}

// rules are all of them, in the order in which they are tried: the first that allows
// a change is why. What each reads of the request is what it gets here.
func rules() [9]rule {
	return [...]rule{
		{
			RuleAllowance, "The parent carries an allowance for the change that was not used yet, given by a policy that still gives it, " +
				"and the user is among those who may exercise it.",
			byAllowance,
		},
		{
			RuleApproval, "A ChangeApproval has approved this edit of an object whose children are refused because of it.",
			func(in *inputs, c change.Change) (Finding, bool) { return byApproval(in.earlier, c) },
		},
		{
			RuleUpgrade, "An UpgradeAllowance is in force for the user and the object and allows the change, " +
				"and nobody edited the parent who may not.",
			func(in *inputs, c change.Change) (Finding, bool) { return byUpgrade(in.o, in.above, in.windows, c) },
		},
		{
			RuleInitiate, "A policy about the object names the change, its selectors and expressions hold, " +
				"the user is one of its subjects that may initiate it, and it asks for no approvals.",
			func(in *inputs, c change.Change) (Finding, bool) { return byInitiator(in.o, in.by, in.auth, c) },
		},
		{
			RuleInitializing, "The parent was never ready, and the user is a controller that builds up what it is made of, " +
				"of which the object was no part before.",
			func(in *inputs, _ change.Change) (Finding, bool) {
				return byInitializing(in.o, in.by, in.how, in.now, in.problems)
			},
		},
		{
			RuleDeleting, "The object is deleted because its parent is deleted or gone; a managed resource only where it carries a grant " +
				"to delete its external object, or that object would stay.",
			func(in *inputs, _ change.Change) (Finding, bool) { return byDeletion(in.o, in.by, in.problems) },
		},
		{
			RuleException, "Each Enforcement that governs the object has an exception, not over yet, for the user and the change.",
			func(in *inputs, c change.Change) (Finding, bool) { return byException(in.by, in.enforced, in.now, c) },
		},
		{
			RuleLeftBehind, "A person releases an orphaned managed resource, or gives it another parent, or has an XR refer to it.",
			func(in *inputs, c change.Change) (Finding, bool) { return byRelease(in.o, in.by, c) },
		},
		{
			RuleRepair, "Crossplane puts back what somebody has changed or deleted by hand, and the pipeline desires what it did before; " +
				"of what has no gate, and not again and again.",
			func(in *inputs, c change.Change) (Finding, bool) { return byRepair(in.o, in.by, in.desired, c) },
		},
	}
}

// Rules calls a function with the name and the contract of each rule, in the order in
// which they are tried.
func Rules(yield func(name Rule, contract string) bool) {
	for _, r := range rules() {
		if !yield(r.name, r.contract) {
			return
		}
	}
}

// find returns what is to be said of a change that is not exempt.
func find(in *inputs, c change.Change) Finding {
	// 1. An Enforcement that cannot be evaluated refuses it.
	if f, ok := byBroken(in, c); ok {
		return f
	}

	// 2. The first rule that allows it is why, unless its gate would not open for it.
	for _, r := range rules() {
		f, ok := r.allows(in, c)
		if !ok {
			continue
		}

		f.Rule, f.Change, f.Verdict = r.name, c, Allowed
		f.Generation = decidedBy(in.auth.Policies, in.enforced, in.windows, f).Generation

		return waits(in, withBuilding(in.o, in.by, in.how, in.now, f))
	}

	// 3. Nothing is about it.
	if in.o.Root && !governed(in.o, in.by, in.auth, in.enforced, c) && !frees(in.o, in.by, in.auth.Policies, in.enforced, in.windows, c) &&
		(!guarded(in.how, in.outside) || !counts(c)) {
		return Finding{Change: c, Verdict: Ungoverned}
	}

	// 4. It is not allowed, and this is what it lacks.
	return in.unallowed(c, lacks(in, c))
}

// unallowed is the finding on an unallowed change.
func unallowed(o objects, policies *policy.Set, places *places, outside outside, windows windows, c change.Change, lacks []Lack) Finding {
	for i := range lacks {
		lacks[i].Generation = lackingGeneration(policies, windows, lacks[i])
	}

	nameOwners(policies, lacks)

	out := Finding{
		Change: c, Verdict: Unallowed, Lacks: lacks, between: o.between(),
		digested: func() digest.Change { return digested(o, places, outside, c) },
	}

	out.replaced = replaces(o, outside, c)

	switch {
	case len(lacks) == 0:
	case out.replaced:
		lacks[0].Text, lacks[0].Short = plus(leavesBehind(o, outside), lacks[0].Text), "it would orphan its external object"
	case succeeded(o, outside, out):
		lacks[0].Text, lacks[0].Short = plus(takesFromSuccessor(o, outside), lacks[0].Text), "it would delete an external object in use"
	}

	return out
}

// plus joins two clauses, of which the second may be empty.
func plus(text, more string) string {
	if more == "" {
		return text
	}

	return text + "; " + more
}
