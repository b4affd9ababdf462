// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is a collection of compiled policies, indexed by kind. It is never
// modified and safe for concurrent use. The zero Set is empty.
type Set struct {
	byKind map[string][]*Policy
	byName map[string]*Policy
}

// NewSet makes a Set. Policies come out of it ordered by name.
func NewSet(policies ...*Policy) *Set {
	s := &Set{byKind: map[string][]*Policy{}, byName: make(map[string]*Policy, len(policies))}

	sorted := slices.SortedFunc(slices.Values(policies), func(a, b *Policy) int { return strings.Compare(a.name, b.name) })
	for _, p := range sorted {
		s.byKind[p.spec.Match.Kind] = append(s.byKind[p.spec.Match.Kind], p)
		s.byName[p.name] = p
	}

	return s
}

// For returns the policies about a kind, ordered by name.
func (s *Set) For(gk schema.GroupKind) []*Policy {
	if s == nil {
		return nil
	}

	all := s.byKind[gk.Kind]

	i := slices.IndexFunc(all, func(p *Policy) bool { return !p.about(gk) })
	if i < 0 {
		return all
	}

	return slices.DeleteFunc(slices.Clone(all), func(p *Policy) bool { return !p.about(gk) })
}

// ByName returns a policy, nil if it is not in the set.
func (s *Set) ByName(name string) *Policy {
	if s == nil {
		return nil
	}

	return s.byName[name]
}

func (p *Policy) about(gk schema.GroupKind) bool {
	return p.spec.Match.Kind == gk.Kind && (p.spec.Match.APIGroup == "" || p.spec.Match.APIGroup == gk.Group)
}
