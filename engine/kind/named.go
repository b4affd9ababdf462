// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Names are the kinds that policies and windows name, each once.
func Names(policies []v1alpha1.AllowancePolicy, windows []v1alpha1.UpgradeAllowance) []Name {
	out := make([]Name, 0, len(policies))

	for _, p := range policies {
		out = append(out, OfPolicy(p.Spec)...)
	}

	for _, w := range windows {
		out = append(out, OfPermissions(w.Spec.Allow)...)
	}

	slices.SortFunc(out, func(a, b Name) int {
		if a.String() < b.String() {
			return -1
		}

		return 1
	})

	return slices.Compact(out)
}

// OfPolicy returns the kinds that a policy names.
func OfPolicy(spec v1alpha1.AllowancePolicySpec) []Name {
	return append(OfPermissions(spec.Allow), OfMatch(&spec.Match)...)
}

// OfMatch returns the kinds whose changes a policy matches.
func OfMatch(m *v1alpha1.Match) []Name {
	kinds := policy.KindsOf(m)
	out := make([]Name, 0, len(kinds))

	for _, gk := range kinds {
		out = append(out, Name(gk))
	}

	return out
}

// OfPermissions returns the kinds that permissions name.
func OfPermissions(allow []v1alpha1.Permission) []Name {
	out := make([]Name, 0, len(allow))

	for _, p := range allow {
		if p.Relation != v1alpha1.RelationExternal {
			out = append(out, Name{Group: p.APIGroup, Kind: p.Kind})
		}
	}

	return out
}

// Among names those of some kinds that are missing, each once; empty for none.
func Among(kinds, missing []Name) string {
	var unknown []string

	for _, k := range kinds {
		if slices.Contains(missing, k) && !slices.Contains(unknown, k.String()) {
			unknown = append(unknown, k.String())
		}
	}

	return strings.Join(unknown, ", ")
}
