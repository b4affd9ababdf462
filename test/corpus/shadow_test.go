// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
)

// TestWhatInShadowModeMakesTheDifferenceIsKnown in each scenario in which something does.
func TestWhatInShadowModeMakesTheDifferenceIsKnown(t *testing.T) {
	got := map[string]decision.InShadow{}

	for name, req := range requests(t) {
		if !strings.Contains(name, "shadow") {
			continue
		}

		for _, s := range decision.Decide(req).Shadow {
			got[strings.TrimPrefix(name, "policy/")] = s.By

			if text := decision.ShadowText(s); !strings.Contains(text, s.By.Condition) {
				t.Errorf("%s: condition %q is not in %q", name, s.By.Condition, text)
			}
		}
	}

	want := map[string]decision.InShadow{
		"approval-shadow":               {Policy: "widgets"},
		"param-shadow":                  {Policy: "colors"},
		"shadow-allows":                 {Policy: "colors"},
		"shadow-binding":                {Policy: "colors"},
		"shadow-condition":              {Policy: "colors", Condition: "ticket"},
		"shadow-condition-binding":      {Policy: "colors", Condition: "color"},
		"shadow-condition-forbids":      {Policy: "fixed", Condition: "green"},
		"shadow-condition-of-shadow":    {Policy: "colors"},
		"shadow-condition-other-policy": {Policy: "colors", Condition: "ticket"},
		"shadow-denied":                 {Policy: "colors"},
		"shadow-forbids-alone":          {Policy: "colors"},
		"shadow-governs":                {Policy: "colors"},
		"shadow-parent":                 {Policy: "sizes"},
		"shadow-permissions":            {Policy: "colors"},
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
