// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// An Inquiry asks what holds for an object.
type Inquiry struct {
	Request

	// Changes that are asked about; none for those that the request makes. Of one that the
	// request does not make the conditions see the object as it is.
	Changes []change.Change
}

// Explanation is the most explicit form of what holds for a request: all that could allow
// a change of its object, or forbid it, whether or not it does. Lists are in the order in
// which they are tried, and not to be modified.
type Explanation struct {
	// Changes and what is decided of each.
	Changes []Finding
	// Action taken on unallowed changes; empty means none.
	Action v1alpha1.ValidationAction
	// Phase of the parent; empty for a root.
	Phase Phase
	// Home is the namespace that the object belongs to, in which bindings are found and
	// Permissions asked; empty for none.
	Home string
	// Allowances that the parent carries for objects of the kind.
	Allowances []ExplainedAllowance
	// Windows that allow changes of objects of the kind.
	Windows []ExplainedWindow
	// Policies about the object's kind, those in Shadow mode after those that are in force.
	Policies []ExplainedPolicy
	// Giving are the policies about the parent's kind that give allowances for the object's.
	Giving []ExplainedPolicy
	// Enforcements whose rules are about the resource.
	Enforcements []ExplainedEnforcement
	// Broken are policies about the kind, or the parent's, that do not compile.
	Broken []policy.Broken
	// Problems are inputs that could not be used.
	Problems []error
}

// Phase is where a parent stands, see docs/concepts.md.
type Phase string

// Phases.
const (
	// PhaseInitializing is a parent that was never ready.
	PhaseInitializing Phase = "Initializing"
	// PhaseSteady is one that was.
	PhaseSteady Phase = "Steady"
	// PhaseDeleting is one that is being deleted.
	PhaseDeleting Phase = "Deleting"
	// PhaseGone is one that is not there.
	PhaseGone Phase = "Gone"
)

// ExplainedAllowance is an allowance of the parent.
type ExplainedAllowance struct {
	v1alpha1.Allowance

	// Covers are the fields of the changes that it is about.
	Covers []string
	// Missing says why it serves no more, or not this user; empty where it does.
	Missing string
}

// ExplainedWindow is an UpgradeAllowance.
type ExplainedWindow struct {
	*v1alpha1.UpgradeAllowance

	// Covers are the fields of the changes that it allows.
	Covers []string
	// Missing says why it serves not this user and object now; empty where it does.
	Missing string
}

// ExplainedEnforcement is an Enforcement whose rules are about the resource.
type ExplainedEnforcement struct {
	*enforcement.Enforcement

	// Governs is true where it governs the object; where not, its selectors or conditions
	// leave it out.
	Governs bool
	// Action that it takes on unallowed changes.
	Action v1alpha1.ValidationAction
	// Problem is a condition that could not be evaluated.
	Problem error
	// Exceptions that it has.
	Exceptions []ExplainedException
}

// ExplainedException is an exception of an Enforcement.
type ExplainedException struct {
	*v1alpha1.Exception

	// Covers are the fields of the changes that it is about.
	Covers []string
	// Missing says why it excepts not this user now; empty where it does.
	Missing string
}

// Explain says what holds for a request, and decides the changes that are asked about. The
// request and its objects are not modified. The error is about a request that makes no
// sense.
func Explain(in Inquiry) (Explanation, error) {
	f, err := gather(in.Request, false)
	if err != nil {
		return Explanation{}, err
	}

	// 1. What is decided.
	j := newJudge(f).judgeAll().hold()
	x := teller{explainer: explainer{j.judge}, findings: j.findings}

	if in.Changes != nil {
		x.findings = make([]Finding, len(in.Changes))
		for i, c := range in.Changes {
			x.findings[i] = x.find(c)
		}
	}

	out := Explanation{Changes: x.findings, Action: j.action, Phase: x.phase(), Home: x.home()}

	// 2. What was tried, in this order.
	out.Allowances = x.explainAllowances()
	out.Windows = x.explainWindows()
	out.Policies, out.Giving = x.explainPolicies()
	out.Enforcements = x.explainEnforcements()

	// 3. What could not be.
	out.Broken = x.broken()
	out.Problems = x.problems.list

	return out, nil
}

// A teller says what holds for changes.
type teller struct {
	explainer

	findings []Finding
}

// covered are the fields of the changes that something is about.
func (x teller) covered(is func(change.Change) bool) []string {
	var out []string

	for _, f := range x.findings {
		if is(f.Change) && !slices.Contains(out, f.Change.Field) {
			out = append(out, f.Change.Field)
		}
	}

	return out
}

// phase is that of the parent.
func (x teller) phase() Phase {
	switch {
	case x.ParentGone:
		return PhaseGone
	case x.Parent == nil:
		return ""
	case resource.Deleting(x.Parent):
		return PhaseDeleting
	case !x.parentBuilt():
		return PhaseInitializing
	default:
		return PhaseSteady
	}
}

// explainAllowances are those that the parent carries for objects of the kind.
func (x teller) explainAllowances() []ExplainedAllowance {
	var out []ExplainedAllowance

	gk := x.groupKind()

	for _, a := range x.allowances {
		if allowance.External(a) || a.Kind != gk.Kind || a.APIGroup != "" && a.APIGroup != gk.Group {
			continue
		}

		e := ExplainedAllowance{Allowance: a}

		for _, f := range x.findings {
			if !allowance.Covers(a, gk, f.Change) {
				continue
			}

			e.Covers = append(e.Covers, f.Change.Field)

			if x.premature(a) || x.consumed(a, f.Change) || !x.mayExercise(a, f.Change) {
				e.Missing = x.unusable(a, f.Change, x.Parent.GetKind()+" "+resource.Name(x.Parent)).String()
			}
		}

		out = append(out, e)
	}

	return out
}

// explainWindows are the windows about the object's kind. With changes, those that allow
// any of them.
func (x teller) explainWindows() []ExplainedWindow {
	var out []ExplainedWindow

	for _, u := range x.Upgrades {
		covers := x.covered(func(c change.Change) bool { return u.Covers(x.groupKind(), c) })
		if len(covers) == 0 && (len(x.findings) > 0 || !x.ofKind(u.Spec.Allow)) {
			continue
		}

		e := ExplainedWindow{UpgradeAllowance: u.UpgradeAllowance, Covers: covers}

		switch {
		case !u.Selects(x.target(), x.Old):
			e.Missing = "it does not select the object"
		case x.notInForce(u) != "":
			e.Missing = "it " + x.notInForce(u)
		case !u.InForce(x.Now):
			e.Missing = "it is over"
		case u.Spec.ServiceAccount != x.User.Name:
			e.Missing = "it serves only " + u.Spec.ServiceAccount
		case len(x.edited) > 0:
			e.Missing = "the parent has an edit that is not allowed"
		}

		out = append(out, e)
	}

	return out
}

// ofKind reports whether permissions are about the object's kind.
func (x teller) ofKind(allow []v1alpha1.Permission) bool {
	return slices.ContainsFunc(allow, func(perm v1alpha1.Permission) bool { return of(perm, x.groupKind()) })
}

// explainEnforcements are those whose rules are about the resource.
func (x teller) explainEnforcements() []ExplainedEnforcement {
	var out []ExplainedEnforcement

	for _, e := range x.Enforcements {
		if x.neverEnforced() || !e.Covers(x.Resource) {
			continue
		}

		one := ExplainedEnforcement{Enforcement: e, Action: actionOf(e)}
		one.Governs, one.Problem = e.Governs(x.enforced(), x.input())

		for i := range e.Spec().Exceptions {
			one.Exceptions = append(one.Exceptions, x.explainException(e, &e.Spec().Exceptions[i]))
		}

		out = append(out, one)
	}

	return out
}

func (x teller) explainException(e *enforcement.Enforcement, in *v1alpha1.Exception) ExplainedException {
	out := ExplainedException{Exception: in}

	for _, f := range x.findings {
		if slices.ContainsFunc(in.Mutations, f.Change.CoveredBy) {
			out.Covers = append(out.Covers, f.Change.Field)
		}
	}

	switch {
	case len(e.Broken()) > 0:
		out.Missing = "its Enforcement does not compile"
	case !x.Now.Before(in.Until.Time):
		out.Missing = "it is over"
	case !slices.ContainsFunc(in.Subjects, x.User.Is):
		out.Missing = "it is for " + policy.Describe(in.Subjects, func(v1alpha1.Subject) bool { return true })
	}

	return out
}

// broken are the policies about the object's kind, or its parent's, that do not compile.
func (x teller) broken() []policy.Broken {
	var out []policy.Broken

	for _, b := range x.Policies.Broken() {
		if policy.IsAbout(&b.Spec.Match, x.groupKind()) ||
			x.Parent != nil && policy.IsAbout(&b.Spec.Match, x.Parent.GroupVersionKind().GroupKind()) && x.ofKind(b.Spec.Allow) {
			out = append(out, b)
		}
	}

	return out
}
