// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// About reports whether the policy is about changes of a field, as text, of a kind, and about
// nothing of it that it leaves out.
func (p *Policy) About(gk schema.GroupKind, field string) bool {
	if !IsAbout(&p.spec.Match, gk) {
		return false
	}

	path, err := fieldpath.Parse(field)
	if err != nil || len(path) == 0 {
		return true // A key that no path can hold: the kind has to do.
	}

	return slices.ContainsFunc(p.fields, func(f change.Pattern) bool { return f.Covers(path) }) &&
		!slices.ContainsFunc(p.excluded, func(e change.Pattern) bool { return touches(e, path) })
}

// Allows reports whether the policy allows a change of a child of a kind.
func (p *Policy) Allows(gk schema.GroupKind, c change.Change) bool {
	return slices.ContainsFunc(p.spec.Allow, func(a v1alpha1.Permission) bool {
		return a.Relation != v1alpha1.RelationExternal && a.Kind == gk.Kind && (a.APIGroup == "" || a.APIGroup == gk.Group) &&
			slices.ContainsFunc(a.Mutations, c.CoveredBy)
	})
}

// ReachesOutside reports whether the policy allows anything in the system outside.
func (p *Policy) ReachesOutside() bool {
	return slices.ContainsFunc(p.spec.Allow, func(a v1alpha1.Permission) bool { return a.Relation == v1alpha1.RelationExternal })
}

// External are those of some actions in the system outside that the policy allows.
func (p *Policy) External(actions []string) []string {
	return slices.DeleteFunc(slices.Clone(actions), func(action string) bool {
		return !slices.ContainsFunc(p.spec.Allow, func(a v1alpha1.Permission) bool {
			return a.Relation == v1alpha1.RelationExternal && slices.Contains(a.Mutations, action)
		})
	})
}
