// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// checkConstant finds conditions of a policy that read nothing.
func (l *linter) checkConstant(p Item[*v1alpha1.AllowancePolicy]) {
	match := field.NewPath("spec", "match")

	for i, text := range p.Object.Spec.Match.CEL {
		l.constant(p.At, text, match.Child("cel").Index(i), "the policy never matches")
	}

	for i, c := range p.Object.Spec.Match.MatchConditions {
		l.constant(p.At, c.Expression, match.Child("matchConditions").Index(i).Child("expression"), "the policy never matches")
	}
}

// constantConditions finds those of bindings and Enforcements.
func (l *linter) constantConditions() {
	conditions := func(item int, list []v1alpha1.MatchCondition, never string) {
		if l.broken[item] {
			return
		}

		for i, c := range list {
			l.constant(item, c.Expression, field.NewPath("spec", "matchConditions").Index(i).Child("expression"), never)
		}
	}

	for _, b := range l.Bindings {
		list := make([]v1alpha1.MatchCondition, 0, len(b.Object.Spec.MatchConditions))
		for _, c := range b.Object.Spec.MatchConditions {
			list = append(list, c.MatchCondition)
		}

		conditions(b.At, list, "nobody initiates by the binding")
	}

	for _, e := range l.Enforcements {
		conditions(e.At, e.Object.Spec.MatchConditions, "the Enforcement is about nothing")
	}
}

func (l *linter) constant(item int, text string, at *field.Path, never string) {
	switch value, ok := constant(text); {
	case !ok:
	case value:
		l.add(item, ConstantCondition, at.String(), "it is always true", "take it away")
	default:
		l.add(item, ConstantCondition, at.String(), "it is never true: "+never, "")
	}
}

// constant is what an expression gives that reads nothing, and so is true or false of every
// change; ok is false of others, and of those that do not compile.
func constant(text string) (value, ok bool) {
	e, err := policy.CompileExpression(text)
	if err != nil || e.Reads().Anything {
		return false, false
	}

	value, _, err = e.Eval(policy.Input{})

	return value, err == nil
}
