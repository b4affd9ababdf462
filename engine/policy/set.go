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
	byName map[string]*Policy
	// broken are those that do not compile, by name.
	broken []Broken
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

// NewSet makes a Set. Policies come out of it ordered by name.
func NewSet(policies ...*Policy) *Set {
	s := &Set{
		byKind: make(map[schema.GroupKind][]*Policy, len(policies)),
		byName: make(map[string]*Policy, len(policies)),
	}

	for _, p := range policies {
		gk := p.groupKind()
		s.byKind[gk] = append(s.byKind[gk], p)
		s.byName[p.name] = p
	}

	// What is about any group is about each.
	for gk, list := range s.byKind {
		if gk.Group != "" {
			s.byKind[gk] = append(list, s.byKind[schema.GroupKind{Kind: gk.Kind}]...)
		}
	}

	for _, list := range s.byKind {
		slices.SortStableFunc(list, func(a, b *Policy) int { return strings.Compare(a.name, b.name) })
	}

	return s
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

// All returns all policies, ordered by name.
func (s *Set) All() []*Policy {
	if s == nil {
		return nil
	}

	return slices.SortedFunc(maps.Values(s.byName), func(a, b *Policy) int { return strings.Compare(a.name, b.name) })
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

func (p *Policy) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: p.spec.Match.APIGroup, Kind: p.spec.Match.Kind}
}
