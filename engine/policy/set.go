// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Set is a collection of compiled policies, indexed by group and kind. It is
// never modified and safe for concurrent use. The zero Set is empty.
type Set struct {
	// byKind holds for each group and kind that a policy names all policies
	// about it; under a kind without a group are those about any group.
	byKind map[schema.GroupKind][]*Policy
	// named holds for the name of each kind all policies about a kind of that name, of
	// whatever group.
	named  map[string][]*Policy
	byName map[string]*Policy
	// broken are those that do not compile, by name.
	broken []Broken
	// shadow is the Set with all in force that is in Shadow mode, and shadowed are the
	// policies of which that is true; nil without any.
	shadow   *Set
	shadowed map[string]bool
}

// Broken is a policy that does not compile, and grants nothing.
type Broken struct {
	// Name of the policy, and its generation.
	Name       string
	Generation int64
	// Spec of it; not to be modified.
	Spec *v1alpha1.AllowancePolicySpec
	// Fields of it that are wrong, as paths.
	Fields []string
}

// Broken are the policies that are left out as they do not compile, by name; not
// to be modified.
func (s *Set) Broken() []Broken {
	if s == nil {
		return nil
	}

	return s.broken
}

// NewSet makes a Set. Policies come out of it ordered by name; those in Shadow mode do
// not.
func NewSet(policies ...*Policy) *Set {
	var shadowed map[string]bool

	inForce, all := make([]*Policy, 0, len(policies)), make([]*Policy, 0, len(policies))

	for _, p := range policies {
		if all = append(all, p.enforced()); !inShadow(&p.spec) {
			inForce = append(inForce, p)
		}

		if p.shadows() {
			if shadowed == nil {
				shadowed = map[string]bool{}
			}

			shadowed[p.name] = true
		}
	}

	out := newSet(inForce)
	if shadowed != nil {
		out.shadow, out.shadowed = newSet(all), shadowed
	}

	return out
}

func newSet(policies []*Policy) *Set {
	s := &Set{
		byKind: make(map[schema.GroupKind][]*Policy, len(policies)),
		named:  make(map[string][]*Policy, len(policies)),
		byName: make(map[string]*Policy, len(policies)),
	}

	for _, p := range policies {
		s.byName[p.name] = p

		for _, gk := range KindsOf(&p.spec.Match) {
			s.byKind[gk] = append(s.byKind[gk], p)
			s.named[gk.Kind] = append(s.named[gk.Kind], p)
		}
	}

	// What is about any group is about each.
	for gk, list := range s.byKind {
		if gk.Group != "" {
			s.byKind[gk] = append(list, s.byKind[schema.GroupKind{Kind: gk.Kind}]...)
		}
	}

	for _, list := range s.byKind {
		slices.SortStableFunc(list, byName)
	}

	for _, list := range s.named {
		slices.SortStableFunc(list, byName)
	}

	return s
}

func byName(a, b *Policy) int { return strings.Compare(a.name, b.name) }

// Named returns the policies about a kind of a name, of whatever group, ordered by name; not
// to be modified.
func (s *Set) Named(kind string) []*Policy {
	if s == nil {
		return nil
	}

	return s.named[kind]
}

// For returns the policies about a kind, ordered by name; not to be modified.
func (s *Set) For(gk schema.GroupKind) []*Policy {
	if s == nil {
		return nil
	}

	if list, ok := s.byKind[gk]; ok {
		return list
	}

	return s.byKind[schema.GroupKind{Kind: gk.Kind}]
}

// Governs reports whether a policy is about who may change objects of a kind.
func (s *Set) Governs(gk schema.GroupKind) bool {
	return slices.ContainsFunc(s.For(gk), (*Policy).Governs)
}

// Shadowed are the policies about a kind that are in Shadow mode as a whole, ordered by
// name.
func (s *Set) Shadowed(gk schema.GroupKind) []*Policy {
	if s == nil {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(s.shadow.For(gk)), func(p *Policy) bool { return !inShadow(&p.spec) })
}

// ReadsParent reports whether a policy about a kind, or a binding of one, reads the parent of an
// object. What is in Shadow mode does not count; see [Set.ShadowReadsParent].
func (s *Set) ReadsParent(gk schema.GroupKind, bindings *Bindings) bool {
	return slices.ContainsFunc(s.For(gk), func(p *Policy) bool {
		return slices.ContainsFunc(p.conditions, func(c *condition) bool { return c.parent && !c.shadow }) || bindings.readParent(p)
	})
}

// ShadowReadsParent reports the same where all is in force that is in Shadow mode.
func (s *Set) ShadowReadsParent(gk schema.GroupKind, bindings *Bindings) bool {
	return s != nil && s.shadow.ReadsParent(gk, bindings)
}

// All returns all policies, ordered by name.
func (s *Set) All() []*Policy {
	if s == nil {
		return nil
	}

	return slices.SortedFunc(maps.Values(s.byName), byName)
}

// Every returns all policies, also those that are in Shadow mode, ordered by name.
func (s *Set) Every() []*Policy {
	if s != nil && s.shadow != nil {
		return s.shadow.All()
	}

	return s.All()
}

// Len is how many policies there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}

	return len(s.byName)
}

// ByName returns a policy, nil if it is not in the set.
func (s *Set) ByName(name string) *Policy {
	if s == nil {
		return nil
	}

	return s.byName[name]
}
