// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// partKind is what a part of an object is.
type partKind int

const (
	// IsExpression is one of CEL.
	IsExpression partKind = iota
	// isChange is the path of a change.
	isChange
	// isValue is the path of a field that is read.
	isValue
)

// Part is a path or an expression of an object, which is checked by schemas.
type Part struct {
	Written policy.Written

	Kind partKind
}

// MatchParts are those of what a policy matches.
func MatchParts(m *v1alpha1.Match) []Part {
	at := field.NewPath("spec", "match")

	return slices.Concat(
		paths(isChange, m.Fields, at.Child("fields")),
		paths(isChange, m.ExcludeFields, at.Child("excludeFields")),
		expressions(policy.Expressions(m)...),
		paths(isValue, m.Capture, at.Child("capture")))
}

// allowParts are the changes of children of a kind that are allowed.
func allowParts(allow []v1alpha1.Permission, gk schema.GroupKind) []Part {
	var out []Part

	for i, perm := range allow {
		if ofChild(perm, gk) {
			out = append(out, paths(isChange, perm.Mutations, field.NewPath("spec", "allow").Index(i).Child("mutations"))...)
		}
	}

	return out
}

// gateParts are those of a policy's gate settings.
func gateParts(gate *v1alpha1.GateSettings) []Part {
	if gate == nil || gate.CloseWhen == "" {
		return nil
	}

	return expressions(policy.Written{Text: gate.CloseWhen, Role: expression.RoleCondition, At: field.NewPath("spec", "gate", "closeWhen")})
}

// BindingParts are the conditions of a binding.
func BindingParts(b *v1alpha1.AllowanceBinding) []Part {
	list := make([]v1alpha1.MatchCondition, 0, len(b.Spec.MatchConditions))
	for _, c := range b.Spec.MatchConditions {
		list = append(list, c.MatchCondition)
	}

	return ConditionParts(list)
}

// ConditionParts are the conditions of an Enforcement, or of a binding.
func ConditionParts(list []v1alpha1.MatchCondition) []Part {
	out := make([]Part, 0, len(list))

	for i, c := range list {
		at := field.NewPath("spec", "matchConditions").Index(i).Child("expression")
		out = append(out, expressions(policy.Written{Text: c.Expression, Role: expression.RoleCondition, At: at})...)
	}

	return out
}

func expressions(list ...policy.Written) []Part {
	out := make([]Part, 0, len(list))
	for _, w := range list {
		out = append(out, Part{Written: w})
	}

	return out
}

func paths(kind partKind, texts []string, at *field.Path) []Part {
	out := make([]Part, 0, len(texts))
	for i, text := range texts {
		out = append(out, Part{Kind: kind, Written: policy.Written{Text: text, At: at.Index(i)}})
	}

	return out
}
