// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

func TestAnExpressionIsEvaluated(t *testing.T) {
	annotated := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"jira": "INFRA-1"}}, "spec": map[string]any{"replicas": int64(3)}}
	plain := map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"replicas": int64(2)}}

	cases := map[string]struct {
		reason string
		text   string
		in     expression.Input
		want   bool
		err    bool
	}{
		"KeyPresent": {
			reason: "has() takes a map key, as the policies of the reference use it.",
			text:   "has(object.metadata.annotations['jira'])",
			in:     expression.Input{Object: annotated},
			want:   true,
		},
		"KeyAbsent": {
			reason: "has() of a key is false, and no error, when the map itself is missing.",
			text:   "has(object.metadata.annotations['jira'])",
			in:     expression.Input{Object: plain},
		},
		"FieldPresent": {
			reason: "has() of a field is CEL's own.",
			text:   "has(object.spec.replicas) && !has(object.spec.other)",
			in:     expression.Input{Object: plain},
			want:   true,
		},
		"OldObject": {
			reason: "Both versions can be compared.",
			text:   "object.spec.replicas > oldObject.spec.replicas",
			in:     expression.Input{Object: annotated, OldObject: plain},
			want:   true,
		},
		"MissingField": {
			reason: "A field that is not there is an error, neither true nor false.",
			text:   "object.spec.nope == 1",
			in:     expression.Input{Object: plain},
			err:    true,
		},
		"NoBool": {
			reason: "A dynamic result that is no bool is an error.",
			text:   "object.spec.replicas",
			in:     expression.Input{Object: plain},
			err:    true,
		},
		"Costly": {
			reason: "An expression that exceeds its budget is an error.",
			text:   "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))",
			in:     expression.Input{Object: plain},
			err:    true,
		},
		"KubernetesLibrary": {
			reason: "Kubernetes' own libraries are there.",
			text:   "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
			in:     expression.Input{Object: plain},
			want:   true,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := expression.Compile(tc.text)
			if err != nil {
				t.Fatalf("%s\nCompileExpression(%q): %v", tc.reason, tc.text, err)
			}

			got, _, err := e.Eval(tc.in)
			if got != tc.want || (err != nil) != tc.err {
				t.Errorf("%s\nEval(%q) = %v, %v; want %v, error %v", tc.reason, tc.text, got, err, tc.want, tc.err)
			}
		})
	}
}

func TestAnExpressionThatDoesNotCompileIsRefused(t *testing.T) {
	for _, text := range []string{"object.", "nope.spec", "1 + 1", "has(1)", "'a'"} {
		if _, err := expression.Compile(text); err == nil {
			t.Errorf("CompileExpression(%q): want an error", text)
		}
	}
}
