// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// constantConditions finds conditions of bindings and Enforcements that read nothing.
func (l *linter) constantConditions() {
	for _, b := range l.Input.Bindings {
		l.checkConstant(b.At, typecheck.BindingParts(b.Object), "nobody initiates by the binding")
	}

	for _, e := range l.Input.Enforcements {
		l.checkConstant(e.At, typecheck.ConditionParts(e.Object.Spec.MatchConditions), "the Enforcement is about nothing")
	}
}

// checkConstant finds conditions among the parts of an object that read nothing, and so are true
// or false of every change.
func (l *linter) checkConstant(item int, parts []typecheck.Part, never string) {
	if l.broken[item] {
		return
	}

	for _, p := range parts {
		if p.Kind != typecheck.IsExpression || p.Written.Role != expression.RoleCondition {
			continue
		}

		e, err := expression.Compile(p.Written.Text)
		if err != nil || e.Reads().Anything {
			continue
		}

		switch value, _, err := e.Eval(expression.Input{}); {
		case err != nil:
		case value:
			l.report.Add(item, typecheck.ConstantCondition, p.Written.At.String(), "it is always true", "take it away")
		default:
			l.report.Add(item, typecheck.ConstantCondition, p.Written.At.String(), "it is never true: "+never, "")
		}
	}
}
