// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Grants are the permissions that policies and windows give about a kind, by the name of
// the kind.
type Grants map[string][]grant

// grant is a permission of a policy; of a window where no policy is named.
type grant struct {
	policy     string
	permission v1alpha1.Permission
	// of are the kinds whose changes give it; none of a window.
	of []schema.GroupKind
}

// GrantsOf are those of policies that are not in Shadow mode, and of windows.
func GrantsOf(policies []v1alpha1.AllowancePolicy, windows []v1alpha1.UpgradeAllowance) Grants {
	out := Grants{}

	add := func(policy string, of []schema.GroupKind, allow []v1alpha1.Permission) {
		for _, perm := range allow {
			out[perm.Kind] = append(out[perm.Kind], grant{policy: policy, permission: perm, of: of})
		}
	}

	for _, p := range policy.InForce(policies) {
		add(p.GetName(), policy.KindsOf(&p.Spec.Match), p.Spec.Allow)
	}

	for i := range windows {
		add("", nil, windows[i].Spec.Allow)
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

// Parents are the served kinds of which policies allow changes of children of a kind.
func (g Grants) Parents(gk schema.GroupKind, served []kind.Served) []kind.Served {
	var out []kind.Served

	for _, one := range g[gk.Kind] {
		if !ofChild(one.permission, gk) {
			continue
		}

		for _, k := range served {
			named := slices.ContainsFunc(one.of, func(of schema.GroupKind) bool { return kind.Name(of).Matches(k.GVK) })
			if named && !slices.ContainsFunc(out, func(o kind.Served) bool { return o.GVK == k.GVK }) {
				out = append(out, k)
			}
		}
	}

	return out
}
