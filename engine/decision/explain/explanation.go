// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain says how a request would be decided and why, by each policy, window and Enforcement; and decides requests to
// approve and reject. It reads, and decides nothing that is applied.
package explain

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/grant"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/lack"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// An Inquiry asks what holds for an object.
type Inquiry struct {
	Request request.Request

	// Changes that are asked about; none for those that the request makes. Of one that the
	// request does not make the conditions see the object as it is.
	Changes []change.Change
}

// Explanation is the most explicit form of what holds for a request: all that could allow
// a change of its object, or forbid it, whether or not it does. Lists are in the order in
// which they are tried, and not to be modified.
type Explanation struct {
	// Changes and what is decided of each.
	Changes []finding.Finding
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
	Allowance v1alpha1.Allowance

	// Covers are the fields of the changes that it is about.
	Covers []string
	// Missing says why it serves no more, or not this user; empty where it does.
	Missing string
}

// ExplainedWindow is an UpgradeAllowance.
type ExplainedWindow struct {
	UpgradeAllowance *v1alpha1.UpgradeAllowance

	// Covers are the fields of the changes that it allows.
	Covers []string
	// Missing says why it serves not this user and object now; empty where it does.
	Missing string
}

// ExplainedEnforcement is an Enforcement whose rules are about the resource.
type ExplainedEnforcement struct {
	Enforcement *enforcement.Enforcement

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
	Exception *v1alpha1.Exception

	// Covers are the fields of the changes that it is about.
	Covers []string
	// Missing says why it excepts not this user now; empty where it does.
	Missing string
}

// Explain says what holds for a request, and decides the changes that are asked about. The
// request and its objects are not modified. The error is about a request that makes no
// sense.
func Explain(in Inquiry) (Explanation, error) {
	all, err := input.Read(in.Request, request.Mutate)
	if err != nil {
		return Explanation{}, err
	}

	// 1. What is decided.
	found := rule.Judge(all)
	left, _ := hold.TakeBack(all, found)
	findings := found.Findings

	if in.Changes != nil {
		findings = make([]finding.Finding, len(in.Changes))
		for i, c := range in.Changes {
			findings[i] = rule.Find(left, c)
		}
	}

	out := Explanation{Changes: findings, Action: found.Action, Phase: phase(left.Objects, left.Now), Home: left.Objects.Home()}

	// 2. What was tried, in this order.
	out.Allowances = explainAllowances(left, findings)
	out.Windows = explainWindows(left.Objects, left.Writer, left.Above, left.Windows, left.Now, findings)
	out.Policies, out.Giving = explainPolicies(left.Objects, left.Authority, findings)
	out.Enforcements = explainEnforcements(left.Objects, left.Writer, left.Authority, left.Enforced, left.Now, findings)

	// 3. What could not be.
	out.Broken = broken(left.Objects, left.Authority.Policies.Broken())
	out.Problems = left.Problems.List

	return out, nil
}

// covered are the fields of the changes that something is about.
func covered(findings []finding.Finding, is func(change.Change) bool) []string {
	var out []string

	for _, f := range findings {
		if is(f.Change) && !slices.Contains(out, f.Change.Field) {
			out = append(out, f.Change.Field)
		}
	}

	return out
}

// phase is that of the parent.
func phase(o request.Objects, now time.Time) Phase {
	switch {
	case o.ParentGone:
		return PhaseGone
	case o.Parent == nil:
		return ""
	case resource.Deleting(o.Parent):
		return PhaseDeleting
	case !o.ParentBuilt(now):
		return PhaseInitializing
	default:
		return PhaseSteady
	}
}

// explainAllowances are those that the parent carries for objects of the kind.
func explainAllowances(in *input.Inputs, findings []finding.Finding) []ExplainedAllowance {
	var out []ExplainedAllowance

	gk := in.Objects.GroupKind()

	for _, a := range in.Above.Allowances {
		if allowance.External(a) || a.Kind != gk.Kind || a.APIGroup != "" && a.APIGroup != gk.Group {
			continue
		}

		e := ExplainedAllowance{Allowance: a}

		for _, f := range findings {
			if !allowance.Covers(a, gk, f.Change) {
				continue
			}

			e.Covers = append(e.Covers, f.Change.Field)

			if grant.Premature(in.Objects, a) || grant.Consumed(in.Objects, in.Manner, in.Above, in.Now, a, f.Change) ||
				!grant.MayExercise(in.Objects, in.Writer, in.Authority.Policies, a, f.Change) {
				e.Missing = lack.Unusable(in, a, f.Change, in.Objects.Parent.GetKind()+" "+resource.Name(in.Objects.Parent)).String()
			}
		}

		out = append(out, e)
	}

	return out
}

// explainWindows are the windows about the object's kind. With changes, those that allow
// any of them.
func explainWindows(
	o request.Objects, by request.Writer, above *input.Above, windows input.Windows, now time.Time, findings []finding.Finding,
) []ExplainedWindow {
	var out []ExplainedWindow

	for _, u := range windows.All {
		covers := covered(findings, func(c change.Change) bool { return u.Covers(o.GroupKind(), c) })
		if len(covers) == 0 && (len(findings) > 0 || !ofKind(o, u.Object.Spec.Allow)) {
			continue
		}

		e := ExplainedWindow{UpgradeAllowance: u.Object, Covers: covers}

		switch {
		case !u.Selects(o.Target(), o.Old):
			e.Missing = "it does not select the object"
		case lack.NotInForce(o, now, u) != "":
			e.Missing = "it " + lack.NotInForce(o, now, u)
		case !u.InForce(now):
			e.Missing = "it is over"
		case u.Object.Spec.ServiceAccount != by.User.Name:
			e.Missing = "it serves only " + u.Object.Spec.ServiceAccount
		case len(above.Edited) > 0:
			e.Missing = "the parent has an edit that is not allowed"
		}

		out = append(out, e)
	}

	return out
}

// ofKind reports whether permissions are about the object's kind.
func ofKind(o request.Objects, allow []v1alpha1.Permission) bool {
	return slices.ContainsFunc(allow, func(perm v1alpha1.Permission) bool { return lack.OfKind(perm, o.GroupKind()) })
}

// explainEnforcements are those whose rules are about the resource.
func explainEnforcements(
	o request.Objects, by request.Writer, auth *authority.Authority, enforced input.Enforced, now time.Time, findings []finding.Finding,
) []ExplainedEnforcement {
	var out []ExplainedEnforcement

	for _, e := range enforced.All {
		if enforced.Never || !e.Covers(o.Resource) {
			continue
		}

		one := ExplainedEnforcement{Enforcement: e, Action: input.ActionOf(e)}
		one.Governs, one.Problem = e.Governs(o.EnforcementTarget(), auth.Input())

		for i := range e.Spec().Exceptions {
			one.Exceptions = append(one.Exceptions, explainException(by, now, findings, e, &e.Spec().Exceptions[i]))
		}

		out = append(out, one)
	}

	return out
}

func explainException(
	by request.Writer, now time.Time, findings []finding.Finding, e *enforcement.Enforcement, in *v1alpha1.Exception,
) ExplainedException {
	out := ExplainedException{Exception: in}

	for _, f := range findings {
		if slices.ContainsFunc(in.Mutations, f.Change.CoveredBy) {
			out.Covers = append(out.Covers, f.Change.Field)
		}
	}

	switch {
	case len(e.Broken()) > 0:
		out.Missing = "its Enforcement does not compile"
	case !now.Before(in.Until.Time):
		out.Missing = "it is over"
	case !slices.ContainsFunc(in.Subjects, by.User.Is):
		out.Missing = "it is for " + policy.Describe(in.Subjects, func(v1alpha1.Subject) bool { return true })
	}

	return out
}

// broken are the policies about the object's kind, or its parent's, that do not compile.
func broken(o request.Objects, all []policy.Broken) []policy.Broken {
	var out []policy.Broken

	for _, b := range all {
		if policy.IsAbout(&b.Spec.Match, o.GroupKind()) ||
			o.Parent != nil && policy.IsAbout(&b.Spec.Match, o.Parent.GroupVersionKind().GroupKind()) && ofKind(o, b.Spec.Allow) {
			out = append(out, b)
		}
	}

	return out
}
