// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// What is in Shadow mode is not in a [Set], and there is another Set beside it in which
// it is: what both decide differently is what enforcing it would change.

// InForce are the policies that are not in Shadow mode.
func InForce(list []v1alpha1.AllowancePolicy) []v1alpha1.AllowancePolicy {
	out := make([]v1alpha1.AllowancePolicy, 0, len(list))

	for i := range list {
		if !inShadow(&list[i].Spec) {
			out = append(out, list[i])
		}
	}

	return out
}

func inShadow(spec *v1alpha1.AllowancePolicySpec) bool {
	return spec.EnforcementMode == v1alpha1.EnforcementModeShadow
}

// InShadow reports whether the policy is in Shadow mode as a whole.
func (p *Policy) InShadow() bool { return inShadow(&p.spec) }

// ShadowCondition is the name of a condition where the policy has it in Shadow mode; empty
// otherwise.
func (p *Policy) ShadowCondition(name string) string {
	if slices.ContainsFunc(p.spec.Match.MatchConditions, func(c v1alpha1.PolicyCondition) bool {
		return c.Name == name && c.EnforcementMode == v1alpha1.EnforcementModeShadow
	}) {
		return name
	}

	return ""
}

// shadows reports whether the policy, or a condition of it, is in Shadow mode.
func (p *Policy) shadows() bool {
	return inShadow(&p.spec) || slices.ContainsFunc(p.conditions, func(c *condition) bool { return c.shadow })
}

// enforced is the policy with all of it in force.
func (p *Policy) enforced() *Policy {
	if !p.shadows() {
		return p
	}

	out := *p
	out.conditions = make([]*condition, len(p.conditions))

	for i, c := range p.conditions {
		one := *c
		one.shadow = false
		out.conditions[i] = &one
	}

	return &out
}

// Shadow is the Set with all in force that is in Shadow mode; nil where nothing is that is
// about a kind, or about that of the parent.
func (s *Set) Shadow(gk, parent schema.GroupKind) *Set {
	if s == nil || s.shadow == nil {
		return nil
	}

	inShadow := func(p *Policy) bool { return s.shadowed[p.name] }
	if !slices.ContainsFunc(s.shadow.For(gk), inShadow) && !slices.ContainsFunc(s.shadow.For(parent), inShadow) {
		return nil
	}

	return s.shadow
}
