// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
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
func (p *Policy) Forbids() bool { return len(p.spec.Allow) == 0 && !HasInitiators(&p.spec) }

// Governs reports whether the policy is about who may change its fields of an
// object that nothing above it allows to be changed.
func (p *Policy) Governs() bool { return HasInitiators(&p.spec) || p.Forbids() }

// CheckReach says where nobody can make use of the policy: nobody may initiate,
// and none of the permissions that other policies and windows give is about the
// fields it names.
func (p *Policy) CheckReach(given []v1alpha1.Permission) []v1alpha1.TypeCheckingWarning {
	at := field.NewPath("spec", "subjects").String()

	switch {
	case HasInitiators(&p.spec):
		return nil
	case p.Forbids() && len(p.spec.Subjects) == 0:
		return nil
	case p.Forbids():
		return []v1alpha1.TypeCheckingWarning{{Field: at, Warning: "none of the subjects may initiate, and nothing is allowed: " +
			"nobody may change these fields by this policy; give a subject mayInitiate: true, or leave out all subjects to say so"}}
	case slices.ContainsFunc(given, p.reachedBy):
		return nil
	}

	return []v1alpha1.TypeCheckingWarning{{Field: at, Warning: fmt.Sprintf(
		"nobody can make use of the policy: no subject has mayInitiate: true, and no other AllowancePolicy or UpgradeAllowance allows %s of a %s",
		strings.Join(p.spec.Match.Fields, " or "), DescribeKinds(&p.spec.Match))}}
}

// OfChild reports whether a permission is about children of a kind.
func OfChild(perm v1alpha1.Permission, gk schema.GroupKind) bool {
	return perm.Relation != v1alpha1.RelationExternal && names(perm.APIGroup, perm.Kind, gk)
}

// reachedBy reports whether a permission is about any of the fields that the policy
// names.
func (p *Policy) reachedBy(perm v1alpha1.Permission) bool {
	m := p.spec.Match
	if perm.Relation == v1alpha1.RelationExternal || !NamesKind(&m, perm.Kind) ||
		perm.APIGroup != "" && m.APIGroup != "" && perm.APIGroup != m.APIGroup {
		return false
	}

	return slices.ContainsFunc(perm.Mutations, func(text string) bool {
		allowed, err := change.ParsePattern(text)

		return err == nil && slices.ContainsFunc(p.fields, allowed.Overlaps)
	})
}
