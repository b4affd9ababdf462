// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// names are the kinds that policies and windows name, each once.
func names(policies []v1alpha1.AllowancePolicy, windows []v1alpha1.UpgradeAllowance) []kindName {
	out := make([]kindName, 0, len(policies))

	for _, p := range policies {
		out = append(out, policyKinds(p.Spec)...)
	}

	for _, w := range windows {
		out = append(out, permissionKinds(w.Spec.Allow)...)
	}

	slices.SortFunc(out, func(a, b kindName) int {
		if a.String() < b.String() {
			return -1
		}

		return 1
	})

	return slices.Compact(out)
}

func policyKinds(spec v1alpha1.AllowancePolicySpec) []kindName {
	return append(permissionKinds(spec.Allow), kindName{group: spec.Match.APIGroup, kind: spec.Match.Kind})
}

func permissionKinds(allow []v1alpha1.Permission) []kindName {
	out := make([]kindName, 0, len(allow))

	for _, p := range allow {
		if p.Relation != v1alpha1.RelationExternal {
			out = append(out, kindName{group: p.APIGroup, kind: p.Kind})
		}
	}

	return out
}

// among names those of some kinds that are missing, each once; empty for none.
func among(kinds, missing []kindName) string {
	var unknown []string

	for _, k := range kinds {
		if slices.Contains(missing, k) && !slices.Contains(unknown, k.String()) {
			unknown = append(unknown, k.String())
		}
	}

	return strings.Join(unknown, ", ")
}
