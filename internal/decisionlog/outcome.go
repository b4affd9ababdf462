// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Outcome is what a decision says. Credentials are masked in all of it.
type Outcome struct {
	// Outcome in one word: Unchanged, Allowed, Ungoverned, Denied, Held, Warned or
	// Audited.
	Outcome decision.Outcome `json:"outcome"`
	// Do is what was done with the request: Allow, Hold, Deny or Retry.
	Do decision.Do `json:"do"`
	// Reason of Deny and Retry.
	Reason string `json:"reason,omitempty"`
	// Action taken on what is unallowed: Audit, Warn, Hold or Deny.
	Action v1alpha1.ValidationAction `json:"action,omitempty"`
	// Enforcements that govern the object.
	Enforcements []string `json:"enforcements,omitempty"`
	// Findings on each change, by field.
	Findings []Finding `json:"findings,omitempty"`
	// Held are the changes that were taken back.
	Held []v1alpha1.HeldChange `json:"held,omitempty"`
	// Kept are other fields that were put back.
	Kept []string `json:"kept,omitempty"`
	// Forged are annotations that only Kausality writes and somebody else tried to.
	Forged []string `json:"forged,omitempty"`
	// Overruled are values of the writer's that are not what is stored.
	Overruled []string `json:"overruled,omitempty"`
	// Warnings for the user.
	Warnings []string `json:"warnings,omitempty"`
	// Shadow says what would be decided otherwise if what is in Shadow mode were enforced.
	Shadow []string `json:"shadow,omitempty"`
	// Problems are inputs that could not be used.
	Problems []string `json:"problems,omitempty"`
}

// Finding is what is decided about one change.
type Finding struct {
	// Field that changes, or create or delete.
	Field string `json:"field"`
	// Verdict: Allowed, Unallowed or Ungoverned.
	Verdict finding.Verdict `json:"verdict"`
	// Rule that allowed it.
	Rule finding.Rule `json:"rule,omitempty"`
	// Policy, window or ENFORCEMENT/EXCEPTION that allowed it.
	Policy string `json:"policy,omitempty"`
	// Initiator is who started the chain that allowed it.
	Initiator string `json:"initiator,omitempty"`
	// Lacks are what it would take, where it is unallowed.
	Lacks []Lack `json:"lacks,omitempty"`
}

// Lack is one thing that prevents a change from being allowed.
type Lack struct {
	// Policy that would allow it.
	Policy string `json:"policy,omitempty"`
	// What is lacking.
	What policy.LackKind `json:"what"`
	// Text for a person.
	Text string `json:"text"`
}

// OutcomeOf is what a decision says.
func OutcomeOf(d *decision.Decision) Outcome {
	answer := d.Answer()
	out := Outcome{
		Outcome: d.Outcome(), Do: answer.Do, Reason: answer.Reason, Action: d.Action, Enforcements: d.Enforcements, Held: d.Held,
		Kept: d.Kept, Forged: d.Forged, Overruled: d.Overruled, Warnings: d.Warnings,
	}

	for _, f := range d.Findings {
		told := Finding{Field: f.Change.Field, Verdict: f.Verdict, Rule: f.Rule, Policy: f.Policy, Initiator: f.Initiator()}
		for _, l := range f.Lacks {
			told.Lacks = append(told.Lacks, Lack{Policy: l.Policy, What: l.What, Text: l.String()})
		}

		out.Findings = append(out.Findings, told)
	}

	for _, f := range d.Shadow {
		out.Shadow = append(out.Shadow, decision.ShadowText(f))
	}

	for _, err := range d.Problems {
		out.Problems = append(out.Problems, err.Error())
	}

	return out
}
