// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Target is what a request is about, as far as rules ask.
type Target struct {
	// Resource of the object.
	Resource schema.GroupResource
	// Versions in which it is served; nil where that is not known.
	Versions []string
	// Operation that is asked for.
	Operation v1alpha1.Operation
	// Namespaced is true of an object in a namespace.
	Namespaced bool
	// Name of the object; empty where it gets one later.
	Name string
}

// Covers reports whether the Enforcement's rules may be about a resource, whatever is
// done to which object.
func (e *Enforcement) Covers(gr schema.GroupResource) bool { return Covers(&e.spec.Match, gr) }

// Covers reports whether a match of an Enforcement may be about a resource.
func Covers(match *v1alpha1.EnforcementMatch, gr schema.GroupResource) bool {
	excluded := slices.ContainsFunc(match.ExcludeResourceRules, func(r v1alpha1.ResourceRule) bool { return whole(r) && names(r, gr) })

	return !Beyond(gr) && Matches(match.ResourceRules, gr) && !excluded
}

// CoversTarget reports whether the Enforcement's rules are about what a request is about.
// Where it is not known in which versions a resource is served, they are in any.
func (e *Enforcement) CoversTarget(t Target) bool {
	return !Beyond(t.Resource) &&
		slices.ContainsFunc(e.spec.Match.ResourceRules, func(r v1alpha1.ResourceRule) bool { return t.in(r, true) }) &&
		!slices.ContainsFunc(e.spec.Match.ExcludeResourceRules, func(r v1alpha1.ResourceRule) bool { return t.in(r, false) })
}

// AsksVersions reports whether the Enforcement has to know in which versions a resource is
// served.
func (e *Enforcement) AsksVersions(gr schema.GroupResource) bool {
	asks := func(r v1alpha1.ResourceRule) bool { return !anyOf(r.APIVersions, anything) && names(r, gr) }

	return slices.ContainsFunc(e.spec.Match.ResourceRules, asks) || slices.ContainsFunc(e.spec.Match.ExcludeResourceRules, asks)
}

// Operations on a resource that the Enforcement may be about, in the order in which an
// object has them.
func (e *Enforcement) Operations(gr schema.GroupResource) []v1alpha1.Operation {
	all := []v1alpha1.Operation{v1alpha1.OperationCreate, v1alpha1.OperationUpdate, v1alpha1.OperationDelete}

	return slices.DeleteFunc(all, func(op v1alpha1.Operation) bool {
		return !e.Covers(gr) || !slices.ContainsFunc(e.spec.Match.ResourceRules, func(r v1alpha1.ResourceRule) bool {
			return names(r, gr) && operates(r, op)
		})
	})
}

// Matches reports whether any of some rules may be about a resource.
func Matches(rules []v1alpha1.ResourceRule, gr schema.GroupResource) bool {
	return slices.ContainsFunc(rules, func(r v1alpha1.ResourceRule) bool { return names(r, gr) })
}

// names reports whether a rule names a resource.
func names(r v1alpha1.ResourceRule, gr schema.GroupResource) bool {
	has := func(list []string, v string) bool { return slices.Contains(list, anything) || slices.Contains(list, v) }

	return has(r.APIGroups, gr.Group) && has(r.Resources, gr.Resource)
}

// in reports whether a rule is about a target. Unknown is the answer where it is not
// known.
func (t Target) in(r v1alpha1.ResourceRule, unknown bool) bool {
	versions := t.Versions == nil && unknown || anyOf(r.APIVersions, anything) ||
		slices.ContainsFunc(t.Versions, func(v string) bool { return slices.Contains(r.APIVersions, v) })

	return versions && names(r, t.Resource) && operates(r, t.Operation) && t.scoped(r.Scope) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, t.Name))
}

func (t Target) scoped(s v1alpha1.Scope) bool {
	switch s {
	case v1alpha1.ScopeCluster:
		return !t.Namespaced
	case v1alpha1.ScopeNamespaced:
		return t.Namespaced
	default:
		return true
	}
}

// operates reports whether a rule is about an operation.
func operates(r v1alpha1.ResourceRule, op v1alpha1.Operation) bool {
	return anyOf(r.Operations, v1alpha1.OperationAll) || slices.Contains(r.Operations, op)
}

// whole reports whether a rule is about all that is done to all objects of its
// resources.
func whole(r v1alpha1.ResourceRule) bool {
	return anyOf(r.APIVersions, anything) && anyOf(r.Operations, v1alpha1.OperationAll) && len(r.ResourceNames) == 0 &&
		(r.Scope == "" || r.Scope == v1alpha1.ScopeAll)
}

// anyOf reports whether a list leaves nothing out.
func anyOf[T comparable](list []T, all T) bool { return len(list) == 0 || slices.Contains(list, all) }
