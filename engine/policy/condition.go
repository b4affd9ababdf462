// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// maxMessage limits the bytes of a message that an expression gives.
const maxMessage = 1024

// condition is a compiled [v1alpha1.PolicyCondition], or one of cel, which has no
// name.
type condition struct {
	expression *expression.Expression
	name       string
	message    string
	text       cel.Program // Of messageExpression; nil without one.
	// shadow is true where it does not decide.
	shadow bool
	// parent is true where the condition, or its message, reads the parent.
	parent bool
}

// missing says what is missing where the condition is false.
func (c *condition) missing(a *expression.Activation, b *expression.Budget) string {
	if c.name == "" {
		return fmt.Sprintf("CEL %q is false", c.expression)
	}

	if text := c.said(a, b); text != "" {
		return fmt.Sprintf("condition %q: %s", c.name, text)
	}

	return fmt.Sprintf("condition %q: CEL %q is false", c.name, c.expression)
}

// said is the message of the condition. What the objects hold may be in what an
// expression gives: where that is a credential, the message is the one that is
// written in the policy. It is given by objects without what kubectl stores of what
// was applied, which is there of most.
func (c *condition) said(a *expression.Activation, b *expression.Budget) string {
	if c.text == nil {
		return c.message
	}

	a = a.WithoutApplied()

	if slices.ContainsFunc(a.Input.All(), func(object map[string]any) bool {
		return mask.Hides(nil, object, object)
	}) {
		return c.message
	}

	val, details, err := c.text.Eval(a)
	if err != nil || b.Spend(expression.CostOf(details)) != nil {
		return c.message
	}

	text, _ := val.Value().(string)
	if text = strings.TrimSpace(text); text == "" || len(text) > maxMessage || strings.ContainsAny(text, "\r\n") {
		return c.message
	}

	return text
}

// failed says that the condition could not be evaluated, and why.
func (c *condition) failed(err error) string {
	if c.name == "" {
		return fmt.Sprintf("CEL %q could not be evaluated: %s", c.expression, reason(err))
	}

	return fmt.Sprintf("condition %q: CEL %q could not be evaluated: %s", c.name, c.expression, reason(err))
}

// conditionsIn compiles in a scope all that must be true of a change: expressions of cel, then
// those with names.
func conditionsIn(s *expression.Scope, match *v1alpha1.Match, at *field.Path, errs *field.ErrorList) []*condition {
	if s.Env == nil {
		return nil
	}

	out := make([]*condition, 0, len(match.CEL)+len(match.MatchConditions))

	for i, text := range match.CEL {
		e, err := expression.CompileIn(s.Env, text, s.Reads)
		if err != nil {
			*errs = append(*errs, field.Invalid(at.Child("cel").Index(i), text, err.Error()))

			continue
		}

		out = append(out, &condition{expression: e, parent: e.Reads().Parent})
	}

	names := map[string]bool{}

	for i, m := range match.MatchConditions {
		at := at.Child("matchConditions").Index(i)

		if names[m.Name] {
			*errs = append(*errs, field.Duplicate(at.Child("name"), m.Name))
		}

		names[m.Name] = true

		c := &condition{name: m.Name, message: m.Message, shadow: m.EnforcementMode == v1alpha1.EnforcementModeShadow}

		var err error

		if c.expression, err = expression.CompileIn(s.Env, m.Expression, s.Reads); err != nil {
			*errs = append(*errs, field.Invalid(at.Child("expression"), m.Expression, err.Error()))
		} else {
			c.parent = c.expression.Reads().Parent
		}

		if m.MessageExpression != "" {
			tree, program, err := compileText(s.Env, m.MessageExpression)
			if err != nil {
				*errs = append(*errs, field.Invalid(at.Child("messageExpression"), m.MessageExpression, err.Error()))
			} else {
				c.text, c.parent = program, c.parent || expression.ReadingOf(tree, s.Reads).Parent
			}
		}

		out = append(out, c)
	}

	return out
}

// compileText compiles an expression that gives text.
func compileText(env *cel.Env, text string) (*cel.Ast, cel.Program, error) {
	tree, program, err := expression.CompileTree(env, text)
	if err == nil {
		err = expression.CheckResult(tree, expression.RoleMessage)
	}

	if err != nil {
		return nil, nil, err
	}

	return tree, program, nil
}

// ConditionReading is what a condition of a policy reads.
type ConditionReading struct {
	Reading expression.Reading

	// At is where the condition is written.
	At *field.Path
	// Shadow is true where it does not decide, for it is in Shadow mode.
	Shadow bool
}

// ConditionReadings are those of all conditions of the policy: of cel, then those with names.
func (p *Policy) ConditionReadings() []ConditionReading {
	out := make([]ConditionReading, 0, len(p.conditions))
	for i, c := range p.conditions {
		out = append(out, ConditionReading{Reading: c.expression.Reads(), At: p.atCondition(i), Shadow: c.shadow})
	}

	return out
}

// atCondition is where a condition is written, by its index among all of them.
func (p *Policy) atCondition(i int) *field.Path {
	match := field.NewPath("spec", "match")

	if n := len(p.spec.Match.CEL); i >= n {
		return match.Child("matchConditions").Index(i - n)
	}

	return match.Child("cel").Index(i)
}
