// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// checkChain finds changes of children that a policy allows, of kinds that other things are
// made for, from which nothing follows: no policy is about them.
func (l *linter) checkChain(p typecheck.Item[*v1alpha1.AllowancePolicy]) {
	for i, perm := range p.Object.Spec.Allow {
		n := typecheck.NameOf(perm)
		if !typecheck.Child(perm) || !l.composes(n) {
			continue
		}

		next := l.about(n)

		for j, m := range perm.Mutations {
			if !leadsOn(m) ||
				slices.ContainsFunc(next, func(q *v1alpha1.AllowancePolicy) bool { return typecheck.Overlap(q.Spec.Match.Fields, m) }) {
				continue
			}

			at := field.NewPath("spec", "allow").Index(i).Child("mutations").Index(j)
			l.report.Add(p.At, typecheck.ChainEnds, at.String(), chainText(n, m, len(next) > 0),
				fmt.Sprintf("add an AllowancePolicy that says what may follow, with match: {kind: %s, fields: [%s]}", perm.Kind, m))
		}
	}
}

// chainText says what does not follow from a change.
func chainText(n kind.Name, mutation string, others bool) string {
	if mutation == v1alpha1.MutationDelete {
		return fmt.Sprintf("no AllowancePolicy is about delete of %s: it may be deleted, and the managed resources that it is made of stay", n)
	}

	if others {
		return fmt.Sprintf("none of the AllowancePolicies about %s names %s: it may change, and what it is made of does not follow", n, mutation)
	}

	return fmt.Sprintf("no AllowancePolicy is about %s: its %s may change, and what it is made of does not follow", n, mutation)
}

// composes reports whether other things are made for objects of a kind, as far as is known:
// Crossplane's Claims and XRs, and the parents of what is known to be composed.
func (l *linter) composes(n kind.Name) bool {
	if slices.ContainsFunc(l.known(n), func(k kind.Served) bool { return k.Crossplane }) {
		return true
	}

	return slices.ContainsFunc(l.Input.Composed, func(c Composed) bool { return n.Matches(c.Parent.WithVersion("")) })
}

// checkComposed finds changes of what is not made for the kind that a policy is about, where
// it is known what is.
func (l *linter) checkComposed(p typecheck.Item[*v1alpha1.AllowancePolicy]) {
	matched := kind.OfMatch(&p.Object.Spec.Match)

	for i, perm := range p.Object.Spec.Allow {
		var made []string

		of := func(n kind.Name) bool {
			return slices.ContainsFunc(l.Input.Composed, func(c Composed) bool {
				if !c.Alone || !n.Matches(c.Parent.WithVersion("")) {
					return false
				}

				made = append(made, c.Child.Kind)

				return true
			})
		}

		if !typecheck.Child(perm) || !every(matched, of) || slices.Contains(made, perm.Kind) {
			continue
		}

		at := field.NewPath("spec", "allow").Index(i).Child("kind")
		l.report.Add(p.At, typecheck.NotComposed, at.String(), fmt.Sprintf("Crossplane makes %s for a %s, and no %s",
			describe(made), policy.DescribeKinds(&p.Object.Spec.Match), perm.Kind),
			fmt.Sprintf("allow it in an AllowancePolicy about %s", describe(made)))
	}
}

// every reports whether something is true of each of some names; false for none.
func every(list []kind.Name, is func(kind.Name) bool) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(n kind.Name) bool { return !is(n) })
}

// leadsOn reports whether something else has to follow from a change: what is created builds
// up what it is made of by itself, and metadata is for nobody below.
func leadsOn(mutation string) bool {
	m, err := change.ParsePattern(mutation)
	if err != nil || m.String() == v1alpha1.MutationCreate {
		return false
	}

	return m.Pseudo() || m.Segments()[0].Field != "metadata"
}

// checkCreate finds children that may be created, and of which nothing may be changed
// later.
func (l *linter) checkCreate(p typecheck.Item[*v1alpha1.AllowancePolicy]) {
	for i, perm := range p.Object.Spec.Allow {
		n := typecheck.NameOf(perm)

		create := slices.Index(perm.Mutations, v1alpha1.MutationCreate)
		if !typecheck.Child(perm) || create < 0 || !l.all([]kind.Name{n}, kind.Served.Gated) || l.changes(n) {
			continue
		}

		at := field.NewPath("spec", "allow").Index(i).Child("mutations").Index(create)
		l.report.Add(p.At, typecheck.CreateOnly, at.String(),
			fmt.Sprintf("%s may be created, and no AllowancePolicy or UpgradeAllowance allows a change of its fields: "+
				"once made it stays as it is", n),
			"add the fields that may change to mutations, or to a policy about them")
	}
}

// changes reports whether any policy or window allows a change of a field of a kind, or is
// about one.
func (l *linter) changes(n kind.Name) bool {
	fields := func(list []string) bool {
		return slices.ContainsFunc(list, func(m string) bool { return m != v1alpha1.MutationCreate && m != v1alpha1.MutationDelete })
	}
	gives := func(allow []v1alpha1.Permission) bool {
		return slices.ContainsFunc(allow, func(perm v1alpha1.Permission) bool {
			sameGroup := n.Group == "" || perm.APIGroup == "" || n.Group == perm.APIGroup

			return typecheck.Child(perm) && perm.Kind == n.Kind && sameGroup && fields(perm.Mutations)
		})
	}

	return slices.ContainsFunc(l.Input.Policies,
		func(p typecheck.Item[*v1alpha1.AllowancePolicy]) bool { return gives(p.Object.Spec.Allow) }) ||
		slices.ContainsFunc(l.Input.Windows, func(w typecheck.Item[*v1alpha1.UpgradeAllowance]) bool { return gives(w.Object.Spec.Allow) }) ||
		slices.ContainsFunc(l.about(n), func(p *v1alpha1.AllowancePolicy) bool { return fields(p.Spec.Match.Fields) })
}

// describe lists texts for a person.
func describe(list []string) string { return strings.Join(list, " or ") }
