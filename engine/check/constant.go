// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import "github.com/kausality-io/kausality-crossplane/engine/policy"

// constantConditions finds conditions of bindings and Enforcements that read nothing.
func (l *linter) constantConditions() {
	for _, b := range l.Input.Bindings {
		l.checkConstant(b.At, bindingParts(b.Object), "nobody initiates by the binding")
	}

	for _, e := range l.Input.Enforcements {
		l.checkConstant(e.At, conditionParts(e.Object.Spec.MatchConditions), "the Enforcement is about nothing")
	}
}

// checkConstant finds conditions among the parts of an object that read nothing, and so are true
// or false of every change.
func (l *linter) checkConstant(item int, parts []part, never string) {
	if l.broken[item] {
		return
	}

	for _, p := range parts {
		if p.kind != isExpression || p.Written.Role != policy.RoleCondition {
			continue
		}

		e, err := policy.CompileExpression(p.Written.Text)
		if err != nil || e.Reads().Anything {
			continue
		}

		switch value, _, err := e.Eval(policy.Input{}); {
		case err != nil:
		case value:
			l.report.add(item, ConstantCondition, p.Written.At.String(), "it is always true", "take it away")
		default:
			l.report.add(item, ConstantCondition, p.Written.At.String(), "it is never true: "+never, "")
		}
	}
}
