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
	return slices.DeleteFunc(slices.Clone(list), func(p v1alpha1.AllowancePolicy) bool { return inShadow(&p.Spec) })
}

func inShadow(spec *v1alpha1.AllowancePolicySpec) bool {
	return spec.EnforcementMode == v1alpha1.EnforcementModeShadow
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

// Shadow is the Set with all in force that is in Shadow mode; nil where nothing about
// any of some kinds is.
func (s *Set) Shadow(kinds ...schema.GroupKind) *Set {
	if s == nil || s.shadow == nil {
		return nil
	}

	if !slices.ContainsFunc(kinds, func(gk schema.GroupKind) bool {
		return slices.ContainsFunc(s.shadow.For(gk), func(p *Policy) bool { return s.shadowed[p.name] })
	}) {
		return nil
	}

	return s.shadow
}
