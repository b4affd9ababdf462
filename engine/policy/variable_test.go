// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// conditional is a policy with variables and conditions alone.
func conditional(match v1alpha1.Match) *v1alpha1.AllowancePolicy {
	match.Kind, match.Fields = "Database", []string{"spec"}

	return &v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{Match: match}}
}

// sized is an expression that costs about nine tenths of what one may.
const sized = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, " +
	"[1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e > 0)))))"

func TestAVariableIsEvaluatedOnceAndCostsOnce(t *testing.T) {
	cases := map[string]struct {
		reason          string
		variables, uses int
		met             bool
	}{
		"Once": {"What is used often costs once.", 1, 32, true},
		"Many": {"Each of many costs.", 32, 1, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var m v1alpha1.Match

			for i := range tc.variables {
				m.Variables = append(m.Variables, v1alpha1.Variable{Name: fmt.Sprintf("v%d", i), Expression: sized})
				for range tc.uses {
					m.CEL = append(m.CEL, fmt.Sprintf("variables.v%d", i))
				}
			}

			p, errs := policy.Compile(conditional(m))
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			got := p.Evaluate(expression.Input{Object: map[string]any{}})
			if got.Met != tc.met || !tc.met && !strings.Contains(got.Missing, "cost more than") {
				t.Errorf("%s\nmet: %v, %s", tc.reason, got.Met, got.Missing)
			}
		})
	}
}

func TestAPolicyWithWrongVariablesOrConditionsDoesNotCompile(t *testing.T) {
	v := func(list ...string) v1alpha1.Match {
		var m v1alpha1.Match
		for i := 0; i < len(list); i += 2 {
			m.Variables = append(m.Variables, v1alpha1.Variable{Name: list[i], Expression: list[i+1]})
		}

		return m
	}
	c := func(name, expression, message string) v1alpha1.Match {
		return v1alpha1.Match{MatchConditions: []v1alpha1.PolicyCondition{
			{MatchCondition: v1alpha1.MatchCondition{Name: name, Expression: expression}, MessageExpression: message},
		}}
	}

	with := func(m v1alpha1.Match, cel ...string) v1alpha1.Match {
		m.CEL = cel

		return m
	}
	twice := c("a", "true", "")
	twice.MatchConditions = append(twice.MatchConditions, twice.MatchConditions...)

	cases := map[string]struct {
		reason string
		match  v1alpha1.Match
		want   []string
	}{
		"Fine":          {"All is well.", with(v("a", "1", "b", "variables.a + 1"), "variables.b == 2"), nil},
		"Later":         {"A variable sees those before it alone.", v("a", "variables.b", "b", "1"), []string{"spec.match.variables[0].expression: undefined field 'b'"}},
		"Itself":        {"Nor does it see itself.", v("a", "variables.a"), []string{"spec.match.variables[0].expression: undefined field 'a'"}},
		"Undefined":     {"What is no variable is found when it is written.", with(v("a", "1"), "variables.b"), []string{"spec.match.cel[0]: undefined field 'b'"}},
		"NoVariables":   {"Without variables there is no such name.", with(v1alpha1.Match{}, "variables.b"), []string{"spec.match.cel[0]: undeclared reference to 'variables'"}},
		"Type":          {"Its type is known.", with(v("a", "'x'"), "variables.a"), []string{"spec.match.cel[0]: it does not give true or false but string"}},
		"Syntax":        {"It has to compile, and who uses it is not told of it.", with(v("a", "1 +"), "variables.a == 1"), []string{"spec.match.variables[0].expression: Syntax error"}},
		"Duplicate":     {"A name is given once.", v("a", "1", "a", "2"), []string{"spec.match.variables[1].name: Duplicate"}},
		"Reserved":      {"A word of CEL's own cannot be selected.", v("in", "1"), []string{"spec.match.variables[0].name: in:"}},
		"Number":        {"Nor what is no identifier.", v("1a", "1"), []string{"spec.match.variables[0].name: 1a:"}},
		"Injected":      {"Nor an expression.", v("a.b", "1"), []string{"spec.match.variables[0].name: a.b:"}},
		"Escaped":       {"Nor what Kubernetes takes for an escaped name.", v("a__dot__b", "1"), []string{"spec.match.variables[0].name: a__dot__b:"}},
		"Condition":     {"A condition has to compile.", c("a", "object.", ""), []string{"spec.match.matchConditions[0].expression: Syntax error"}},
		"ConditionType": {"A condition is true or false.", c("a", "'x'", ""), []string{"spec.match.matchConditions[0].expression: it does not give true or false but string"}},
		"Message":       {"A message is text.", c("a", "true", "1"), []string{"spec.match.matchConditions[0].messageExpression: it does not give text but int"}},
		"TwoConditions": {"A condition's name is its own.", twice, []string{"spec.match.matchConditions[1].name: Duplicate"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := policy.Compile(conditional(tc.match))

			if len(errs) != len(tc.want) {
				t.Fatalf("%s\n%d errors, want %d: %v", tc.reason, len(errs), len(tc.want), errs)
			}

			for i, err := range errs {
				at, text, _ := strings.Cut(tc.want[i], ": ")
				if err.Field != at || !strings.Contains(fmt.Sprintf("%v: %s", err.BadValue, err.Error()), text) {
					t.Errorf("%s\ngot  %s\nwant %s", tc.reason, err, tc.want[i])
				}
			}
		})
	}
}
