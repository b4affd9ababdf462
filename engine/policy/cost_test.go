// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// TestAnEvaluationSaysWhatItCost up to where it ended, and the same each time.
func TestAnEvaluationSaysWhatItCost(t *testing.T) {
	cases := map[string]struct {
		reason string
		match  v1alpha1.Match
		want   uint64
	}{
		"None":     {reason: "What has no expression costs nothing."},
		"One":      {reason: "An expression costs.", match: v1alpha1.Match{CEL: []string{"object.a == 1"}}, want: 3},
		"Two":      {reason: "Each of them does.", match: v1alpha1.Match{CEL: []string{"object.a == 1", "object.a == 1"}}, want: 6},
		"False":    {reason: "What comes after one that is false is not evaluated.", match: v1alpha1.Match{CEL: []string{"object.a == 2", "object.a == 1"}}, want: 3},
		"Fails":    {reason: "One that fails costs what it had by then.", match: v1alpha1.Match{CEL: []string{"object.a == 1", "object.none == 1"}}, want: 5},
		"Variable": {reason: "So does a variable that is used.", match: v1alpha1.Match{Variables: []v1alpha1.Variable{{Name: "v", Expression: "object.a"}}, CEL: []string{"variables.v == 1"}}, want: 5},
		"Unused":   {reason: "And none that is not.", match: v1alpha1.Match{Variables: []v1alpha1.Variable{{Name: "v", Expression: "object.a"}}, CEL: []string{"object.a == 1"}}, want: 3},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, errs := policy.Compile(conditional(tc.match))
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			for range 2 {
				if got := p.Evaluate(expression.Input{Object: map[string]any{"a": int64(1)}}); got.Cost != tc.want {
					t.Errorf("%s\ncost %d, want %d", tc.reason, got.Cost, tc.want)
				}
			}
		})
	}
}

// TestWhatIsOverTheBudgetIsCounted or nobody would see by how much.
func TestWhatIsOverTheBudgetIsCounted(t *testing.T) {
	var m v1alpha1.Match
	for range 40 {
		m.CEL = append(m.CEL, sized)
	}

	p, errs := policy.Compile(conditional(m))
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	if got := p.Evaluate(expression.Input{Object: map[string]any{}}); got.Problem == nil || got.Cost <= expression.CostLimit {
		t.Errorf("cost %d, %v", got.Cost, got.Problem)
	}

	if diff := cmp.Diff([]float64{10, 100, 1000, 10000, 100000, 1e6, 1e7}, expression.CostBuckets()); diff != "" {
		t.Errorf("buckets, -want, +got:\n%s", diff)
	}
}
