// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// HasInitiators reports whether anybody may start a chain by a policy: its own subjects,
// or those of bindings.
func HasInitiators(spec *v1alpha1.AllowancePolicySpec) bool {
	return Bindable(spec) || slices.ContainsFunc(spec.Subjects, func(s v1alpha1.Subject) bool { return s.MayInitiate })
}

// Bindable reports whether bindings of a policy say who may initiate.
func Bindable(spec *v1alpha1.AllowancePolicySpec) bool {
	return spec.BindingMode == v1alpha1.BindingModeOptional || spec.BindingMode == v1alpha1.BindingModeRequired
}

// Bindable reports whether bindings of the policy say who may initiate.
func (p *Policy) Bindable() bool { return Bindable(&p.spec) }

// RequiresBinding reports whether the policy's own subjects initiate only in namespaces
// that have a binding of it.
func (p *Policy) RequiresBinding() bool { return p.spec.BindingMode == v1alpha1.BindingModeRequired }

// Forbids reports whether the policy names fields that nobody may change: it allows
// nothing, and lets nobody initiate.
func (p *Policy) Forbids() bool { return Forbids(&p.spec) }

// Forbids reports the same of a policy that is not compiled.
func Forbids(spec *v1alpha1.AllowancePolicySpec) bool {
	return len(spec.Allow) == 0 && !HasInitiators(spec)
}

// Governs reports whether the policy is about who may change its fields of an
// object that nothing above it allows to be changed.
func (p *Policy) Governs() bool { return HasInitiators(&p.spec) || p.Forbids() }
