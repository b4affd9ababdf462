// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// An Inquiry asks what holds for an object.
type Inquiry struct {
	Request Request

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
	all, err := read(in.Request, false)
	if err != nil {
		return Explanation{}, err
	}

	// 1. What is decided.
	found := judge(all)
	left, findings := hold(all, found), found.findings

	if in.Changes != nil {
		findings = make([]Finding, len(in.Changes))
		for i, c := range in.Changes {
			findings[i] = find(left, c)
		}
	}

	out := Explanation{Changes: findings, Action: found.action, Phase: phase(left.o, left.now), Home: left.o.home()}

	// 2. What was tried, in this order.
	out.Allowances = explainAllowances(left, findings)
	out.Windows = explainWindows(left.o, left.by, left.above, left.windows, left.now, findings)
	out.Policies, out.Giving = explainPolicies(left.o, left.auth, findings)
	out.Enforcements = explainEnforcements(left.o, left.by, left.auth, left.enforced, left.now, findings)

	// 3. What could not be.
	out.Broken = broken(left.o, left.auth.Policies.Broken())
	out.Problems = left.problems.list

	return out, nil
}

// covered are the fields of the changes that something is about.
func covered(findings []Finding, is func(change.Change) bool) []string {
	var out []string

	for _, f := range findings {
		if is(f.Change) && !slices.Contains(out, f.Change.Field) {
			out = append(out, f.Change.Field)
		}
	}

	return out
}

// phase is that of the parent.
func phase(o objects, now time.Time) Phase {
	switch {
	case o.ParentGone:
		return PhaseGone
	case o.Parent == nil:
		return ""
	case resource.Deleting(o.Parent):
		return PhaseDeleting
	case !o.parentBuilt(now):
		return PhaseInitializing
	default:
		return PhaseSteady
	}
}

// explainAllowances are those that the parent carries for objects of the kind.
func explainAllowances(in *inputs, findings []Finding) []ExplainedAllowance {
	var out []ExplainedAllowance

	gk := in.o.groupKind()

	for _, a := range in.above.allowances {
		if allowance.External(a) || a.Kind != gk.Kind || a.APIGroup != "" && a.APIGroup != gk.Group {
			continue
		}

		e := ExplainedAllowance{Allowance: a}

		for _, f := range findings {
			if !allowance.Covers(a, gk, f.Change) {
				continue
			}

			e.Covers = append(e.Covers, f.Change.Field)

			if premature(in.o, a) || consumed(in.o, in.how, in.above, in.now, a, f.Change) ||
				!mayExercise(in.o, in.by, in.auth.Policies, a, f.Change) {
				e.Missing = unusable(in, a, f.Change, in.o.Parent.GetKind()+" "+resource.Name(in.o.Parent)).String()
			}
		}

		out = append(out, e)
	}

	return out
}

// explainWindows are the windows about the object's kind. With changes, those that allow
// any of them.
func explainWindows(o objects, by writer, above *above, windows windows, now time.Time, findings []Finding) []ExplainedWindow {
	var out []ExplainedWindow

	for _, u := range windows.all {
		covers := covered(findings, func(c change.Change) bool { return u.Covers(o.groupKind(), c) })
		if len(covers) == 0 && (len(findings) > 0 || !ofKind(o, u.Spec.Allow)) {
			continue
		}

		e := ExplainedWindow{UpgradeAllowance: u.UpgradeAllowance, Covers: covers}

		switch {
		case !u.Selects(o.target(), o.Old):
			e.Missing = "it does not select the object"
		case notInForce(o, now, u) != "":
			e.Missing = "it " + notInForce(o, now, u)
		case !u.InForce(now):
			e.Missing = "it is over"
		case u.Spec.ServiceAccount != by.User.Name:
			e.Missing = "it serves only " + u.Spec.ServiceAccount
		case len(above.edited) > 0:
			e.Missing = "the parent has an edit that is not allowed"
		}

		out = append(out, e)
	}

	return out
}

// ofKind reports whether permissions are about the object's kind.
func ofKind(o objects, allow []v1alpha1.Permission) bool {
	return slices.ContainsFunc(allow, func(perm v1alpha1.Permission) bool { return of(perm, o.groupKind()) })
}

// explainEnforcements are those whose rules are about the resource.
func explainEnforcements(
	o objects, by writer, auth *authority, enforced enforced, now time.Time, findings []Finding,
) []ExplainedEnforcement {
	var out []ExplainedEnforcement

	for _, e := range enforced.all {
		if enforced.never || !e.Covers(o.Resource) {
			continue
		}

		one := ExplainedEnforcement{Enforcement: e, Action: actionOf(e)}
		one.Governs, one.Problem = e.Governs(o.enforcementTarget(), auth.input())

		for i := range e.Spec().Exceptions {
			one.Exceptions = append(one.Exceptions, explainException(by, now, findings, e, &e.Spec().Exceptions[i]))
		}

		out = append(out, one)
	}

	return out
}

func explainException(by writer, now time.Time, findings []Finding, e *enforcement.Enforcement, in *v1alpha1.Exception) ExplainedException {
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
func broken(o objects, all []policy.Broken) []policy.Broken {
	var out []policy.Broken

	for _, b := range all {
		if policy.IsAbout(&b.Spec.Match, o.groupKind()) ||
			o.Parent != nil && policy.IsAbout(&b.Spec.Match, o.Parent.GroupVersionKind().GroupKind()) && ofKind(o, b.Spec.Allow) {
			out = append(out, b)
		}
	}

	return out
}
