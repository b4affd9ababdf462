// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rule judges changes: who is exempt from asking (exempt.go), the rules in the order in which they are tried (rules.go,
// one rule_*.go each), and the action on what none of them allows (judge.go).
//
// Its files:
//   - judge.go: which changes of a create, update or delete get a finding ([Judge]); the action on unallowed ones, such as Hold
//     ([ActionOnUnallowed]); other managementPolicies in the Composition
//   - exempt.go: changes that need no permission: metadata, references of Crossplane, late initialization ([Exempt]); labels that
//     would free an object from a policy or Enforcement
//   - rules.go: the rules in order ([Find]); refusal by an Enforcement that does not compile; allowed changes that lack External Update
//   - rule_allowance.go: an unused allowance of the parent, by a policy or else by an approval
//   - rule_approval.go: an edit of the object itself that a ChangeApproval approves
//   - rule_upgrade.go: an UpgradeAllowance in force, but not below an edited parent
//   - rule_initiator.go: a policy by which the user may initiate; which changes of a root are governed; which fields policies name
//   - rule_initializing.go: what controllers do below a parent that was never ready, but to what it takes over ([request.Adopted])
//   - rule_deletion.go: deletion after the parent's deletion; of a managed resource with a grant ([DeletionGrant]), or if it orphans
//   - rule_exception.go: an exception in each Enforcement that governs the object
//   - rule_release.go: a person's write for an orphaned managed resource: release, another owner, a reference from an XR
//   - rule_repair.go: Crossplane's revert of what somebody changed or deleted by hand; its entry in the trace ([RepairOf])
//   - decidedby.go: the generation of the policy, window or Enforcement in a finding; the policy's owner, as whom to ask; initiator
//     and trace of what controllers do by themselves
package rule

import (
	"fmt"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/grant"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/lack"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// A rule allows changes.
type rule struct {
	// name of it, as findings, metrics and audit annotations have it.
	name finding.Rule
	// contract is which changes it allows, in one sentence.
	contract string
	// allows returns the finding on a change that it allows.
	allows func(*input.Inputs, change.Change) (finding.Finding, bool)
}

// rules are all of them, in the order in which they are tried: the first that allows
// a change is why. What each reads of the request is what it gets here.
func rules() [9]rule {
	return [...]rule{
		{
			finding.RuleAllowance, "The parent carries an allowance for the change that was not used yet, given by a policy that still gives it, " +
				"and the user is among those who may exercise it.",
			byAllowance,
		},
		{
			finding.RuleApproval, "A ChangeApproval has approved this edit of an object whose children are refused because of it.",
			func(in *input.Inputs, c change.Change) (finding.Finding, bool) { return byApproval(in.Earlier, c) },
		},
		{
			finding.RuleUpgrade, "An UpgradeAllowance is in force for the user and the object and allows the change, " +
				"and nobody edited the parent who may not.",
			func(in *input.Inputs, c change.Change) (finding.Finding, bool) {
				return byUpgrade(in.Objects, in.Above, in.Windows, c)
			},
		},
		{
			finding.RuleInitiate, "A policy about the object names the change, its selectors and expressions hold, " +
				"the user is one of its subjects that may initiate it, and it asks for no approvals.",
			func(in *input.Inputs, c change.Change) (finding.Finding, bool) {
				return byInitiator(in.Objects, in.Writer, in.Authority, c)
			},
		},
		{
			finding.RuleInitializing, "The parent was never ready, and the user is a controller that builds up what it is made of, " +
				"of which the object was no part before.",
			func(in *input.Inputs, _ change.Change) (finding.Finding, bool) {
				return byInitializing(in.Objects, in.Writer, in.Manner, in.Now, in.Problems)
			},
		},
		{
			finding.RuleDeleting, "The object is deleted because its parent is deleted or gone; a managed resource only where it carries a grant " +
				"to delete its external object, or that object would stay.",
			func(in *input.Inputs, _ change.Change) (finding.Finding, bool) {
				return byDeletion(in.Objects, in.Writer, in.Problems)
			},
		},
		{
			finding.RuleException, "Each Enforcement that governs the object has an exception, not over yet, for the user and the change.",
			func(in *input.Inputs, c change.Change) (finding.Finding, bool) {
				return byException(in.Writer, in.Enforced, in.Now, c)
			},
		},
		{
			finding.RuleLeftBehind, "A person releases an orphaned managed resource, or gives it another parent, or has an XR refer to it.",
			func(in *input.Inputs, c change.Change) (finding.Finding, bool) {
				return byRelease(in.Objects, in.Writer, c)
			},
		},
		{
			finding.RuleRepair, "Crossplane puts back what somebody has changed or deleted by hand, and the pipeline desires what it did before; " +
				"of what has no gate, and not again and again.",
			func(in *input.Inputs, c change.Change) (finding.Finding, bool) {
				return byRepair(in.Objects, in.Writer, in.Desired, c)
			},
		},
	}
}

// Rules calls a function with the name and the contract of each rule, in the order in
// which they are tried.
func Rules(yield func(name finding.Rule, contract string) bool) {
	for _, r := range rules() {
		if !yield(r.name, r.contract) {
			return
		}
	}
}

// Find returns what is to be said of a change that is not exempt.
func Find(in *input.Inputs, c change.Change) finding.Finding {
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

		f.Rule, f.Change, f.Verdict = r.name, c, finding.Allowed
		f.Generation = decidedBy(in.Authority.Policies, in.Enforced, in.Windows, f).Generation

		return waits(in, grant.WithBuilding(in.Objects, in.Writer, in.Manner, in.Now, f))
	}

	// 3. Nothing is about it.
	if in.Objects.Root && !governed(in.Objects, in.Writer, in.Authority, in.Enforced, c) &&
		!frees(in.Objects, in.Writer, in.Authority.Policies, in.Enforced, in.Windows, c) &&
		(!request.Guarded(in.Manner, in.External) || !counts(c)) {
		return finding.Finding{Change: c, Verdict: finding.Ungoverned}
	}

	// 4. It is not allowed, and this is what it lacks.
	return Unallowed(in, c, lack.Of(in, c))
}

// Unallowed is the finding on an unallowed change.
func Unallowed(in *input.Inputs, c change.Change, lacks []finding.Lack) finding.Finding {
	for i := range lacks {
		lacks[i].Generation = lackingGeneration(in.Authority.Policies, in.Windows, lacks[i])
	}

	nameOwners(in.Authority.Policies, lacks)

	out := finding.Finding{
		Change: c, Verdict: finding.Unallowed, Lacks: lacks, Between: in.Objects.Between(),
		Digested: func() digest.Change { return grant.Digested(in.Objects, in.Places, in.External, c) },
	}

	out.Replaced = grant.Replaces(in.Objects, in.External, c)

	switch {
	case len(lacks) == 0:
	case out.Replaced:
		lacks[0].Text, lacks[0].Short = plus(grant.LeavesBehind(in.Objects, in.External), lacks[0].Text), "it would orphan its external object"
	case grant.Succeeded(in.Objects, in.External, out):
		lacks[0].Text = plus(grant.TakesFromSuccessor(in.Objects, in.External), lacks[0].Text)
		lacks[0].Short = "it would delete an external object in use"
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

// byBroken refuses a change that an Enforcement governs which cannot be
// evaluated, as its failure policy says. Who deletes what others have deleted is
// let through, as ever.
func byBroken(in *input.Inputs, c change.Change) (finding.Finding, bool) {
	if in.Manner.Caller == request.Function || request.DeletesForOthers(in.Writer.User) {
		return finding.Finding{}, false
	}

	f := Unallowed(in, c, nil)

	for _, e := range in.Enforced.Governing {
		if e.Refuses() {
			f.Lacks = append(f.Lacks, finding.Lack{
				What: policy.LackEnforcement, Text: fmt.Sprintf(
					"Enforcement %q with failurePolicy Fail does not compile at %s", e.Name(), strings.Join(e.Broken(), ", ")),
				Fix: "correct it, set its failurePolicy to Ignore, or delete it",
			})
		}
	}

	return f, len(f.Lacks) > 0
}

// waits makes of a change that is allowed for the managed resource alone one that is not allowed: its gate would not open for it,
// and let it out with another one.
func waits(in *input.Inputs, f finding.Finding) finding.Finding {
	if !grant.Stays(in.Objects, in.Writer, in.Manner, in.Authority, in.External, in.Now, f) {
		return f
	}

	by, l := fmt.Sprintf("policy %q", f.Policy), finding.Lack{Policy: f.Policy, What: policy.LackField}

	switch {
	case f.Policy == "":
		by = "an allowance"
	case f.Rule == finding.RuleUpgrade:
		by, l.What = fmt.Sprintf("%s %q", f.Rule, f.Policy), policy.LackWindow
	case f.Rule == finding.RuleException:
		by, l.Policy = fmt.Sprintf("%s %q", f.Rule, f.Policy), "" // It is no policy.
	}

	l.Text, l.Fix = by+" allows it, but not External Update, which opens its gate", "allow External Update, too"

	switch {
	case grant.Succeeded(in.Objects, in.External, f):
		l.Text, l.Fix = "", "remove Delete from its managementPolicies first, or approve it"
	case grant.Replaces(in.Objects, in.External, f.Change):
		l.Text, l.Fix = by+" allows it without these", "allow these, too, or approve it"
	default:
		l.Short = by + " does not allow External Update"
	}

	out := Unallowed(in, f.Change, []finding.Lack{l})
	out.Alone = true

	return out
}
