// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// admit finds what the webhook refuses, and what it warns of.
func (l *linter) admit() {
	refused := func(item int, errs field.ErrorList) {
		l.broken[item] = len(errs) > 0 || l.Input.Refused[item]
		l.report.Findings = append(l.report.Findings, typecheck.InvalidFields(item, ruleOf, errs)...)
	}

	for _, p := range l.Input.Policies {
		_, errs := policy.Compile(p.Object)
		refused(p.At, errs)
	}

	for _, b := range l.Input.Bindings {
		_, errs := policy.CompileBinding(b.Object)
		refused(b.At, errs)
	}

	for _, w := range l.Input.Windows {
		refused(w.At, upgradeallowance.Validate(w.Object))

		for _, warning := range upgradeallowance.Warnings(w.Object) {
			at, text, _ := strings.Cut(warning, ": ")
			l.report.Add(w.At, typecheck.WindowIdle, at, text, "")
		}
	}

	for _, e := range l.Input.Enforcements {
		refused(e.At, enforcement.Validate(e.Object))
	}
}

// ruleOf is the rule that an error of compiling is of, by its field.
func ruleOf(err *field.Error) string {
	names := strings.FieldsFunc(err.Field, func(r rune) bool { return r == '.' || r == '[' || r == ']' || r >= '0' && r <= '9' })
	if len(names) == 0 || err.Type == field.ErrorTypeDuplicate || err.Type == field.ErrorTypeRequired {
		return typecheck.InvalidValue
	}

	last := names[len(names)-1]
	switch {
	case last == "cel" || last == "expression" || last == "messageExpression" || last == "closeWhen":
		return typecheck.CELCompile
	case last == "excludeFields" && !strings.Contains(err.Detail, "not a field path"):
		return typecheck.InvalidValue
	case last == "fields" || last == "excludeFields" || last == "mutations" || last == "capture":
		return typecheck.FieldPath
	case strings.Contains(strings.ToLower(err.Field), "selector"):
		return typecheck.Selector
	default:
		return typecheck.InvalidValue
	}
}
