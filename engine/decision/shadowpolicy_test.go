// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
)

// TestWhatIsInShadowModeIsCountedByItsPolicy whether it would allow a change or not.
func TestWhatIsInShadowModeIsCountedByItsPolicy(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		finding decision.Finding
		want    string
	}{
		"Allows": {decision.Finding{Verdict: decision.Allowed, Policy: "a"}, "a"},
		"Lacks":  {decision.Finding{Verdict: decision.Unallowed, Lacks: []decision.Lack{{Text: "x"}, {Policy: "b"}, {Policy: "c"}}}, "b"},
		"None":   {decision.Finding{Verdict: decision.Ungoverned}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := decision.ShadowPolicy(tc.finding); got != tc.want {
				t.Errorf("policy %q, want %q", got, tc.want)
			}
		})
	}
}
