// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// Judged is a decision without its messages.
type Judged struct {
	// Do is what is done with a request: Allow, Hold, Deny or Retry.
	Do decision.Do `json:"do,omitempty"`
	// Decided is the decision, or the plan of a gate, as want.yaml of the corpus says it.
	Decided map[string]any `json:"decided,omitempty"`
	// Patched is the merge patch from the object of the request to the one that is stored.
	Patched map[string]any `json:"patched,omitempty"`
	// Unknown is what was asked and is not in the log.
	Unknown []string `json:"unknown,omitempty"`
}

// Judge is a decision on a request.
func Judge(req *request.Request, d *decision.Decision) (Judged, error) {
	outcome, err := policytest.OutcomeOf(req, d)
	if err != nil {
		return Judged{}, fmt.Errorf("cannot describe decision: %w", err)
	}

	out, err := judge(&outcome)
	out.Do = d.Answer().Do

	return out, err
}

// judge is the outcome of a request, a gate or upkeep.
func judge(outcome *policytest.Outcome) (Judged, error) {
	decided, err := outcome.Decisions()
	if err != nil {
		return Judged{}, fmt.Errorf("cannot describe decision: %w", err)
	}

	text, err := outcome.PatchedDecisions()
	if err != nil {
		return Judged{}, fmt.Errorf("cannot describe patch: %w", err)
	}

	out := Judged{Decided: decided}
	if err := yaml.Unmarshal([]byte(text), &out.Patched); err != nil {
		return Judged{}, fmt.Errorf("cannot describe patch: %w", err)
	}

	return out, nil
}
