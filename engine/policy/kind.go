// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// KindsOf are the kinds whose changes a match is about, each once, sorted; without a
// group where it is about any.
func KindsOf(m *v1alpha1.Match) []schema.GroupKind {
	names := m.Kinds
	if m.Kind != "" {
		names = []string{m.Kind}
	}

	out := make([]schema.GroupKind, 0, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		out = append(out, schema.GroupKind{Group: m.APIGroup, Kind: name})
	}

	return out
}

// NamesKind reports whether a match is about a kind by name, of whatever group.
func NamesKind(m *v1alpha1.Match, kind string) bool {
	return m.Kind == kind && kind != "" || m.Kind == "" && slices.Contains(m.Kinds, kind)
}

// IsAbout reports whether a match is about changes of a kind.
func IsAbout(m *v1alpha1.Match, gk schema.GroupKind) bool {
	return NamesKind(m, gk.Kind) && (m.APIGroup == "" || m.APIGroup == gk.Group)
}

// DescribeKinds names the kinds that a match is about, for a person.
func DescribeKinds(m *v1alpha1.Match) string {
	names := make([]string, 0, len(m.Kinds)+1)
	for _, gk := range KindsOf(m) {
		names = append(names, gk.Kind)
	}

	return strings.Join(names, " or ")
}
