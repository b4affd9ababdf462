// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// Input is what is known.
type Input struct {
	Policies     []typecheck.Item[*v1alpha1.AllowancePolicy]
	Bindings     []typecheck.Item[*v1alpha1.AllowanceBinding]
	Windows      []typecheck.Item[*v1alpha1.UpgradeAllowance]
	Enforcements []typecheck.Item[*v1alpha1.Enforcement]

	// Kinds that there are, each in its preferred version.
	Kinds []kind.Served
	// Schemas of these, and of parameters.
	Schemas typecheck.Schemas
	// Composed are kinds and what is made for their objects, as far as that is known.
	Composed []Composed

	// Refused are the items that are refused before the webhook is asked.
	Refused map[int]bool
	// Settings of the installation: who Crossplane is.
	Settings request.Settings
	// Now is the time to judge windows and exceptions by.
	Now time.Time
}

// Composed is a kind, and one that is made for its objects: an XR for a Claim, a composed
// resource for an XR.
type Composed struct {
	Parent, Child schema.GroupKind
	// Alone is true where nothing else is: of Claims.
	Alone bool
}

// Lint finds what is wrong with all objects of an input, in the order in which they are
// given. Objects are expected to be as the API server would store them, with defaults.
func Lint(in Input) []typecheck.Finding {
	l := &linter{Input: in, broken: map[int]bool{}, unknown: map[kind.Name]bool{}, undefined: map[schema.GroupResource]bool{}}

	// 1. What admission refuses.
	l.admit()

	// 2. What their statuses would say.
	l.typeCheckPolicies()
	l.typeCheckBindings()
	l.typeCheckEnforcements()
	l.findUnchecked()
	l.findOver()

	// 3. What they do not do together.
	l.findDuplicates()

	for i := range in.Policies {
		p := l.Input.Policies[i]
		if l.broken[p.At] {
			continue
		}

		l.checkChain(p)
		l.checkComposed(p)
		l.checkExercise(p)
		l.checkCreate(p)
		l.checkExternal(p.At, p.Object.Spec.Allow)
		l.checkUnusedExternal(p)
		l.checkIdleDelete(p)
		l.checkApproval(p)
		l.checkConstant(p.At, typecheck.MatchParts(&p.Object.Spec.Match), "the policy never matches")
		l.checkCovered(i)
	}

	for _, w := range in.Windows {
		if !l.broken[w.At] {
			l.checkExternal(w.At, w.Object.Spec.Allow)
		}
	}

	slices.SortStableFunc(l.report.Findings, func(a, b typecheck.Finding) int { return a.Item - b.Item })

	return l.report.Findings
}

// linter checks an input.
type linter struct {
	Input  Input
	report typecheck.Report

	// broken are the items that admission refuses.
	broken map[int]bool
	// unknown are the kinds of which it is told that there is no schema.
	unknown map[kind.Name]bool
	// undefined are the resources of which it is told that nothing defines them.
	undefined map[schema.GroupResource]bool
}

// policies as a list.
func (l *linter) policies() []v1alpha1.AllowancePolicy {
	out := make([]v1alpha1.AllowancePolicy, 0, len(l.Input.Policies))
	for _, p := range l.Input.Policies {
		out = append(out, *p.Object)
	}

	return out
}

// windows as a list.
func (l *linter) windows() []v1alpha1.UpgradeAllowance {
	out := make([]v1alpha1.UpgradeAllowance, 0, len(l.Input.Windows))
	for _, w := range l.Input.Windows {
		out = append(out, *w.Object)
	}

	return out
}

// known are the kinds that a name means.
func (l *linter) known(n kind.Name) []kind.Served {
	out, _ := kind.Named(l.Input.Kinds, []kind.Name{n})

	return out
}

// all reports whether all of some names mean known kinds, of each of which something is
// true; false for no names.
func (l *linter) all(names []kind.Name, is func(kind.Served) bool) bool {
	return every(names, func(n kind.Name) bool {
		kinds := l.known(n)

		return len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k kind.Served) bool { return !is(k) })
	})
}

// managed reports whether a permission is about managed resources, as far as is known.
func (l *linter) managed(p v1alpha1.Permission) bool {
	return typecheck.Child(p) && slices.ContainsFunc(l.known(typecheck.NameOf(p)), func(k kind.Served) bool { return k.Managed })
}

// about are the policies about a kind, but for those in Shadow mode.
func (l *linter) about(n kind.Name) []*v1alpha1.AllowancePolicy {
	var out []*v1alpha1.AllowancePolicy

	for _, p := range l.Input.Policies {
		if typecheck.Meets(&p.Object.Spec.Match, n) && p.Object.Spec.EnforcementMode != v1alpha1.EnforcementModeShadow {
			out = append(out, p.Object)
		}
	}

	return out
}
