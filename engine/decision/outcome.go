// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
)

// Do is what is to be done with a request.
type Do string

// What is to be done.
const (
	// Allow lets the request through as it is asked for, but for our annotations.
	Allow Do = "Allow"
	// Hold lets it through without what is taken back.
	Hold Do = "Hold"
	// Deny refuses it.
	Deny Do = "Deny"
	// Retry has it made once more: what would be stored is not what is decided.
	Retry Do = "Retry"
)

// An Answer is what is to be done with a request, and why.
type Answer struct {
	Do Do
	// Reason of Deny and Retry, for a person; empty otherwise.
	Reason string
	// Final is true where the request is to be refused whatever else changes the object
	// before it is stored.
	Final bool
}

// Refuses reports whether the request is not let through now.
func (a Answer) Refuses() bool { return a.Do == Deny || a.Do == Retry }

// Answer returns what is to be done with the request.
func (d *Decision) Answer() Answer {
	switch {
	case d.Conflict != "":
		return Answer{Do: Retry, Reason: d.Conflict}
	case d.Refusal != nil:
		return Answer{Do: Deny, Reason: d.Refusal.Error(), Final: true}
	case len(d.Forged) > 0:
		return Answer{Do: Deny, Reason: forgedMessage(d.Forged), Final: true}
	case d.Action == v1alpha1.ActionDeny && !d.Allowed():
		return Answer{Do: Deny, Reason: d.title + unallowedMessage(d.Findings)}
	case d.Action == v1alpha1.ActionHold && len(d.Held) > 0:
		return Answer{Do: Hold}
	default:
		return Answer{Do: Allow}
	}
}

// Outcome sums a decision up in one word.
type Outcome string

// Outcomes.
const (
	// OutcomeUnchanged means that nothing changes that counts.
	OutcomeUnchanged Outcome = "Unchanged"
	// OutcomeAllowed means that every change that is governed was asked for.
	OutcomeAllowed Outcome = "Allowed"
	// OutcomeUngoverned means that no policy is about what changes.
	OutcomeUngoverned Outcome = "Ungoverned"
	// OutcomeDenied means that the request is refused.
	OutcomeDenied Outcome = "Denied"
	// OutcomeHeld means that something keeps its old value.
	OutcomeHeld Outcome = "Held"
	// OutcomeWarned means that something unallowed passes, and the user is warned.
	OutcomeWarned Outcome = "Warned"
	// OutcomeAudited means that something unallowed passes, and is recorded.
	OutcomeAudited Outcome = "Audited"
)

// Outcome sums the decision up.
func (d *Decision) Outcome() Outcome {
	answer := d.Answer()

	switch {
	case answer.Refuses():
		return OutcomeDenied
	case !d.Allowed():
		return d.passed(answer)
	case len(d.Findings) == 0:
		return OutcomeUnchanged
	case !slices.ContainsFunc(d.Findings, func(f finding.Finding) bool { return f.Verdict == finding.Allowed }):
		return OutcomeUngoverned
	default:
		return OutcomeAllowed
	}
}

// passed sums up a decision by which something unallowed is not refused.
func (d *Decision) passed(answer Answer) Outcome {
	switch {
	case answer.Do == Hold:
		return OutcomeHeld
	case d.Action == v1alpha1.ActionAudit:
		return OutcomeAudited
	default:
		return OutcomeWarned
	}
}

// Initiated reports whether a change is allowed because its user may initiate it, and
// not because of what somebody asked for above.
func (d *Decision) Initiated() bool {
	return slices.ContainsFunc(d.Findings, func(f finding.Finding) bool { return f.Rule == finding.RuleInitiate })
}

// Lead is the finding that says most of the decision: the first that is not
// allowed, or else the first that is. False where nothing is found.
func (d *Decision) Lead() (finding.Finding, bool) { return stamp.Lead(d.Findings) }
