// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestAConditionOfTheAPIServerIsAboutEitherObject(t *testing.T) {
	in := &v1alpha1.Enforcement{Spec: v1alpha1.EnforcementSpec{
		FailurePolicy:   v1alpha1.FailurePolicyIgnore,
		MatchConditions: []v1alpha1.MatchCondition{{Name: "prod", Expression: "object.spec.env == 'prod' || oldObject == null && object.spec.env == 'new'"}},
	}}

	compiled, errs := enforcement.Compile(in)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}

	given := Enforced{Enforcement: compiled}.conditions()
	if len(given) != 1 {
		t.Fatalf("%d conditions, want 1", len(given))
	}

	condition, err := policy.CompileExpression(given[0].Expression)
	if err != nil {
		t.Fatal(err)
	}

	env := func(name string) map[string]any {
		if name == "" {
			return nil
		}

		return map[string]any{"spec": map[string]any{"env": name}}
	}

	for name, tc := range map[string]struct {
		operation, was, is string
		want               bool
	}{
		"Entering": {"UPDATE", "dev", "prod", true},
		"Leaving":  {"UPDATE", "prod", "dev", true},
		"Outside":  {"UPDATE", "dev", "test", false},
		"Made":     {"CREATE", "", "new", true},
		"MadeSo":   {"CREATE", "", "dev", false},
		"Deleted":  {"DELETE", "dev", "", true},
	} {
		got, _, err := condition.Eval(policy.Input{
			OldObject: env(tc.was), Object: env(tc.is),
			Request: func() map[string]any { return map[string]any{"operation": tc.operation} },
		})
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
		}
	}
}
