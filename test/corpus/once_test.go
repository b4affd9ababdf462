// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// TestADecisionReadsEachParameterOnce, however often it evaluates by it: a parameter that changes meanwhile would have it
// contradict itself, and the log of decisions show another one than it was made by.
func TestADecisionReadsEachParameterOnce(t *testing.T) {
	read := false

	for name, req := range requests(t) {
		counts, params := map[string]int{}, req.Basis.Params
		if params == nil {
			continue
		}

		req.Basis.Params = func(q expression.ParamQuery) (expression.ParamList, error) {
			counts[q.String()]++

			return params(q)
		}

		decision.Decide(req)

		for q, n := range counts {
			read = true

			if n != 1 {
				t.Errorf("%s: %s is read %d times", name, q, n)
			}
		}
	}

	if !read {
		t.Error("No decision reads a parameter.")
	}
}
