// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/check"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

func TestAConditionIsConstantWhereItReadsNothing(t *testing.T) {
	t.Parallel()

	always, never := []string{"it is always true"}, []string{"it is never true: the policy never matches"}

	for text, want := range map[string][]string{
		"true":                                    always,
		"1 > 2":                                   never,
		"[1, 2].all(x, x > 0)":                    always,
		"duration('1h') > duration('30m')":        always,
		"object.spec.size == 'small'":             nil,
		"[1, 2].exists(x, x == object.n)":         nil,
		"now > timestamp('2026-01-01T00:00:00Z')": nil,
		"authorizer.requestResource.check('get').allowed()": nil,
		"params.limit == 1":      nil,
		"variables.ticket != ''": nil,
		"'text'":                 nil,
		"1 / 0 == 1":             nil,
		"true &&":                nil,
	} {
		var got []string

		in := input(t, given("p", fmt.Sprintf("fields: [spec.size], cel: [%q]", text), people))
		for _, f := range check.Lint(in) {
			if f.Rule == typecheck.ConstantCondition {
				got = append(got, f.Message)
			}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", text, diff)
		}
	}
}
