// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// findDuplicates finds objects of one name, and conditions of bindings and Enforcements that read nothing.
func (l *linter) findDuplicates() {
	seen := map[string]int{}
	named := func(item int, key, what string) {
		if other, ok := seen[key]; ok {
			l.report.AddWith(item, other, typecheck.DuplicateObject, "metadata.name",
				fmt.Sprintf("%s is there twice: the one that is applied last replaces the other", what),
				"give it another name, or delete one")
		}

		seen[key] = item
	}

	for _, p := range l.Input.Policies {
		named(p.At, "p/"+p.Object.GetName(), fmt.Sprintf("AllowancePolicy %q", p.Object.GetName()))
	}

	for _, b := range l.Input.Bindings {
		name := b.Object.GetNamespace() + "/" + b.Object.GetName()
		named(b.At, "b/"+name, fmt.Sprintf("AllowanceBinding %q", name))
	}

	for _, w := range l.Input.Windows {
		named(w.At, "w/"+w.Object.GetName(), fmt.Sprintf("UpgradeAllowance %q", w.Object.GetName()))
	}

	for _, e := range l.Input.Enforcements {
		named(e.At, "e/"+e.Object.GetName(), fmt.Sprintf("Enforcement %q", e.Object.GetName()))
	}

	l.constantConditions()
}

// checkCovered finds a policy before this one that says the same, or any that gives all
// that this one does and more. Policies only add, so this one does nothing then.
func (l *linter) checkCovered(i int) {
	p := l.Input.Policies[i]

	for j, q := range l.Input.Policies {
		if i == j || l.broken[q.At] || q.Object.GetName() == p.Object.GetName() {
			continue
		}

		if rule, message, remedy := compare(&p.Object.Spec, q.Object, j < i); rule != "" {
			l.report.AddWith(p.At, q.At, rule, "metadata.name", message, remedy)

			return
		}
	}
}

// compare compares a policy with another one, which may be before it. The rule is empty
// where there is nothing to say, or the other one says it.
func compare(p *v1alpha1.AllowancePolicySpec, other *v1alpha1.AllowancePolicy, before bool) (rule, message, remedy string) {
	q := &other.Spec
	same := saysSame(p, q)

	switch {
	case same && equality.Semantic.DeepEqual(p.Subjects, q.Subjects):
		if !before {
			return "", "", ""
		}

		return typecheck.DuplicatePolicy, fmt.Sprintf("AllowancePolicy %q says the same", other.GetName()), "delete one of them"
	case coversPolicy(q, p) && (before || !coversPolicy(p, q)):
		return typecheck.CoveredPolicy, fmt.Sprintf("AllowancePolicy %q allows all that this one does, to the same subjects", other.GetName()),
			"delete this one, or narrow the other"
	case same && before && !coversPolicy(p, q):
		return typecheck.DuplicatePolicy, fmt.Sprintf("AllowancePolicy %q matches and allows the same, for other subjects", other.GetName()),
			"list all subjects in one of them"
	default:
		return "", "", ""
	}
}

// saysSame reports whether two policies are alike, but for their subjects and owners.
func saysSame(p, q *v1alpha1.AllowancePolicySpec) bool {
	a, b := p.DeepCopy(), q.DeepCopy()

	for _, one := range []*v1alpha1.AllowancePolicySpec{a, b} {
		names := policy.KindsOf(&one.Match)

		one.Match.Kind, one.Match.Kinds = "", nil
		for _, gk := range names {
			one.Match.Kinds = append(one.Match.Kinds, gk.Kind)
		}

		slices.Sort(one.Match.Fields)
		one.Subjects, one.Owner = nil, nil
	}

	return equality.Semantic.DeepEqual(a, b)
}

// coversPolicy reports whether a policy gives all that another one does, whenever that one
// does. What cannot be told is not covered.
func coversPolicy(q, p *v1alpha1.AllowancePolicySpec) bool {
	shadow := func(s *v1alpha1.AllowancePolicySpec) bool { return s.EnforcementMode == v1alpha1.EnforcementModeShadow }

	return !policy.Forbids(q) && !policy.Forbids(p) && !shadow(q) && !shadow(p) &&
		coversMatch(&q.Match, &p.Match) && coversSubjects(q.Subjects, p.Subjects) && coversAllow(q.Allow, p.Allow) &&
		q.BindingMode == p.BindingMode && coversApproval(q, p) && equality.Semantic.DeepEqual(q.Gate, p.Gate) &&
		equality.Semantic.DeepEqual(q.ParamKind, p.ParamKind) && equality.Semantic.DeepEqual(q.ParamRef, p.ParamRef)
}

// coversApproval reports whether a policy lets its initiators do what another one does: without
// approvals, or with as many as that one asks for or more, for the most that any asks for count.
func coversApproval(q, p *v1alpha1.AllowancePolicySpec) bool {
	has, other := policy.RequiredApprovals(q), policy.RequiredApprovals(p)

	return has == 0 || other > 0 && other <= has
}

// coversMatch reports whether a match is about all that another one is.
func coversMatch(q, p *v1alpha1.Match) bool {
	for _, gk := range policy.KindsOf(p) {
		if !policy.IsAbout(q, gk) {
			return false
		}
	}

	for _, f := range p.Fields {
		if !covers(q.Fields, f) || typecheck.Overlap(q.ExcludeFields, f) {
			return false
		}
	}

	for _, c := range p.Capture {
		if !slices.Contains(q.Capture, c) {
			return false
		}
	}

	return asksLess(q, p)
}

// asksLess reports whether all that a match asks for besides another one does, too.
func asksLess(q, p *v1alpha1.Match) bool {
	if len(q.Variables) > 0 && !equality.Semantic.DeepEqual(q.Variables, p.Variables) {
		return false
	}

	for _, sel := range [][2]*metav1.LabelSelector{{q.ObjectSelector, p.ObjectSelector}, {q.NamespaceSelector, p.NamespaceSelector}} {
		if sel[0] != nil && !equality.Semantic.DeepEqual(sel[0], sel[1]) {
			return false
		}
	}

	asked := slices.Clone(p.CEL)

	for _, c := range p.MatchConditions {
		if c.EnforcementMode != v1alpha1.EnforcementModeShadow {
			asked = append(asked, c.Expression)
		}
	}

	for _, c := range q.MatchConditions {
		if !slices.Contains(asked, c.Expression) {
			return false
		}
	}

	return !slices.ContainsFunc(q.CEL, func(text string) bool { return !slices.Contains(asked, text) })
}

// coversSubjects reports whether who may initiate by some subjects may by others, and who
// may carry on, too.
func coversSubjects(q, p []v1alpha1.Subject) bool {
	for _, s := range p {
		if s.MayInitiate && !slices.Contains(q, s) {
			return false
		}
	}

	carries := func(s v1alpha1.Subject) bool { return !s.MayInitiate }
	if !slices.ContainsFunc(q, carries) {
		return true // Anybody may.
	}

	others := func(s v1alpha1.Subject) bool { return carries(s) && !slices.Contains(q, s) }

	return slices.ContainsFunc(p, carries) && !slices.ContainsFunc(p, others)
}

// coversAllow reports whether permissions give all that others do.
func coversAllow(q, p []v1alpha1.Permission) bool {
	for _, want := range p {
		for _, m := range want.Mutations {
			if !slices.ContainsFunc(q, func(have v1alpha1.Permission) bool { return gives(have, want, m) }) {
				return false
			}
		}
	}

	return true
}

// gives reports whether a permission gives a mutation of another one.
func gives(have, want v1alpha1.Permission, mutation string) bool {
	if typecheck.Child(have) != typecheck.Child(want) {
		return false
	}

	if !typecheck.Child(want) {
		return slices.Contains(have.Mutations, mutation)
	}

	n := kind.Name{Group: have.APIGroup, Kind: have.Kind}

	return n.Kind == want.Kind && (n.Group == "" || n.Group == want.APIGroup) && covers(have.Mutations, mutation)
}

// covers reports whether one of some patterns covers all that another one does.
func covers(patterns []string, other string) bool {
	q, err := change.ParsePattern(other)
	if err != nil {
		return false
	}

	return slices.ContainsFunc(patterns, func(text string) bool {
		p, err := change.ParsePattern(text)

		return err == nil && p.Covers(q.Segments())
	})
}
