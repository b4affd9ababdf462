// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

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
	// OutcomeWarned means that something unallowed passes, and the user is told.
	OutcomeWarned Outcome = "Warned"
	// OutcomeAudited means that something unallowed passes, and is recorded.
	OutcomeAudited Outcome = "Audited"
)

// Outcome sums the decision up.
func (d *Decision) Outcome() Outcome {
	_, denied := d.Denied()

	switch {
	case denied:
		return OutcomeDenied
	case !d.Allowed():
		return d.passed()
	case len(d.Findings) == 0:
		return OutcomeUnchanged
	case !slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Verdict == Allowed }):
		return OutcomeUngoverned
	default:
		return OutcomeAllowed
	}
}

// passed sums up a decision by which something unallowed is not refused.
func (d *Decision) passed() Outcome {
	switch {
	case d.Action == v1alpha1.ActionHold && len(d.Held) > 0:
		return OutcomeHeld
	case d.Action == v1alpha1.ActionAudit:
		return OutcomeAudited
	default:
		return OutcomeWarned
	}
}

// Lead is the finding that tells most of the decision: the first that is not
// allowed, or else the first that is. False where nothing is found.
func (d *Decision) Lead() (Finding, bool) { return lead(d.Findings) }

func lead(findings []Finding) (Finding, bool) {
	if len(findings) == 0 {
		return Finding{}, false
	}

	weight := func(f Finding) int { return slices.Index([]Verdict{Unallowed, Allowed, Ungoverned}, f.Verdict) }

	return slices.MinFunc(findings, func(a, b Finding) int { return cmp.Compare(weight(a), weight(b)) }), true
}
