// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// A rule allows changes.
type rule struct {
	// name of it, as findings, metrics and audit annotations have it.
	name Rule
	// contract is which changes it allows, in one sentence.
	contract string
	// allows returns the finding on a change that it allows.
	allows func(*judge, change.Change) (Finding, bool)
}

// rules are all of them, in the order in which they are tried: the first that allows
// a change is why.
func rules() [9]rule {
	return [...]rule{
		{
			RuleAllowance, "The parent carries an allowance for the change that was not used yet, given by a policy that still gives it, " +
				"and the user is among those who may exercise it.", (*judge).byAllowance,
		},
		{
			RuleApproval, "A ChangeApproval has approved this edit of an object whose children are refused because of it.",
			(*judge).byApproval,
		},
		{
			RuleUpgrade, "An UpgradeAllowance is in force for the user and the object and allows the change, " +
				"and nobody edited the parent who may not.", (*judge).byUpgrade,
		},
		{
			RuleInitiate, "A policy about the object names the change, its selectors and expressions hold, " +
				"the user is one of its subjects that may initiate it, and it asks for no approvals.", (*judge).byInitiator,
		},
		{
			RuleInitializing, "The parent was never ready, and the user is a controller that builds up what it is made of, " +
				"of which the object was no part before.", (*judge).byInitializing,
		},
		{
			RuleDeleting, "The object is deleted because its parent is deleted or gone; a managed resource only where it carries a grant " +
				"to delete its external object, or that object would stay.", (*judge).byDeletion,
		},
		{
			RuleException, "Each Enforcement that governs the object has an exception, not over yet, for the user and the change.",
			(*judge).byException,
		},
		{
			RuleLeftBehind, "A person releases an orphaned managed resource, or gives it another parent, " +
				"or has an XR refer to it.", (*judge).byRelease,
		},
		{
			RuleRepair, "Crossplane puts back what somebody has changed or deleted by hand, and the pipeline desires what it did before; " +
				"of what has no gate, and not again and again.", (*judge).byRepair,
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

// find returns what is to be said of a change: that an Enforcement which cannot be
// evaluated refuses it, or the rule that allows it, or that it is not governed, or what
// it lacks.
func (j *judge) find(c change.Change) Finding {
	if f, ok := j.byBroken(c); ok {
		return f
	}

	for _, r := range rules() {
		f, ok := r.allows(j, c)
		if !ok {
			continue
		}

		f.Rule, f.Change, f.Verdict = r.name, c, Allowed
		f.Generation = j.sourceOf(f).Generation

		return j.waits(j.building(f))
	}

	if j.root() && !j.governed(c) && !j.frees(c) && (!j.guarded() || !counts(c)) {
		return Finding{Change: c, Verdict: Ungoverned}
	}

	return j.lacking(c, explainer{j}.lacks(c))
}

// lacking is the finding on an unallowed change.
func (t *gating) lacking(c change.Change, lacks []Lack) Finding {
	for i := range lacks {
		lacks[i].Generation = t.lackingGeneration(lacks[i])
	}

	t.nameOwners(lacks)

	out := Finding{Change: c, Verdict: Unallowed, Lacks: lacks, between: t.between(), of: t.facts}

	switch {
	case len(lacks) == 0:
	case t.replaces(c):
		lacks[0].Text, lacks[0].Short = plus(t.leavesBehind(), lacks[0].Text), "it would orphan its external object"
	case t.succeeded(out):
		lacks[0].Text, lacks[0].Short = plus(t.takesFromSuccessor(), lacks[0].Text), "it would delete an external object in use"
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
