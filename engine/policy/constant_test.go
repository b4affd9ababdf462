// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestAnExpressionIsConstantWhereItReadsNothing(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]struct{ value, constant bool }{
		"true":                                    {true, true},
		"1 > 2":                                   {false, true},
		"[1, 2].all(x, x > 0)":                    {true, true},
		"duration('1h') > duration('30m')":        {true, true},
		"object.spec.size == 'small'":             {},
		"[1, 2].exists(x, x == object.n)":         {},
		"now > timestamp('2026-01-01T00:00:00Z')": {},
		"variables.ticket != ''":                  {},
		"'text'":                                  {},
		"1 / 0 == 1":                              {},
		"true &&":                                 {},
	} {
		if value, constant := policy.Constant(text); value != want.value || constant != want.constant {
			t.Errorf("%s: %t, constant %t, want %t, %t", text, value, constant, want.value, want.constant)
		}
	}
}
