// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Grants are the permissions that policies and windows give about a kind, by the name of
// the kind.
type Grants map[string][]grant

// grant is a permission of a policy; of a window where no policy is named.
type grant struct {
	policy     string
	permission v1alpha1.Permission
}

// GrantsOf are those of policies that are not in Shadow mode, and of windows.
func GrantsOf(policies []v1alpha1.AllowancePolicy, windows []v1alpha1.UpgradeAllowance) Grants {
	out := Grants{}

	add := func(policy string, allow []v1alpha1.Permission) {
		for _, perm := range allow {
			out[perm.Kind] = append(out[perm.Kind], grant{policy: policy, permission: perm})
		}
	}

	for _, p := range policy.InForce(policies) {
		add(p.GetName(), p.Spec.Allow)
	}

	for i := range windows {
		add("", windows[i].Spec.Allow)
	}

	return out
}

// Besides are those about a policy's kind that the policy does not give itself.
func (g Grants) Besides(p *v1alpha1.AllowancePolicy) []v1alpha1.Permission {
	var out []v1alpha1.Permission

	for _, gk := range policy.KindsOf(&p.Spec.Match) {
		for _, one := range g[gk.Kind] {
			if one.policy != p.GetName() {
				out = append(out, one.permission)
			}
		}
	}

	return out
}
