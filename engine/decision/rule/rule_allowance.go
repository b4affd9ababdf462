// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/grant"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
)

// byAllowance searches for an unconsumed allowance of the parent that covers the
// change and that the user may exercise. The trace is of the first by granting
// hop; what rides along is of all of them. One of an approval is used where there is no
// other.
func byAllowance(in *input.Inputs, c change.Change) (finding.Finding, bool) {
	if f, ok := byAllowanceThat(in, c, func(a v1alpha1.Allowance) bool {
		return allowance.Covers(a, in.Objects.GroupKind(), c)
	}); ok {
		return f, true
	}

	return byAllowanceThat(in, c, grant.Approved(in.Objects, in.Writer, in.Manner, in.Above, in.Places, in.External, c))
}

func byAllowanceThat(in *input.Inputs, c change.Change, covers func(v1alpha1.Allowance) bool) (finding.Finding, bool) {
	var (
		best     *v1alpha1.Allowance
		external []v1alpha1.Allowance
	)

	var stored []string

	since, held := input.HeldSince(in.Objects, in.Above, in.Places, c)
	if held {
		stored = input.StoredFields(in.Above)
	}

	for i := range in.Above.Allowances {
		a := &in.Above.Allowances[i]
		if !covers(*a) || grant.Premature(in.Objects, *a) || grant.Consumed(in.Objects, in.Manner, in.Above, in.Now, *a, c) ||
			!grant.MayExercise(in.Objects, in.Writer, in.Authority.Policies, *a, c) {
			continue
		}

		// What is held it serves if it came later; what is not it serves if it is sure that this comes from it.
		if held && !since.Serves(*a, stored) {
			continue
		}

		if !held && (input.PerhapsEdited(in.Objects, in.Manner, in.Authority.Policies, in.Above, in.Places, in.Desired, *a, c) ||
			input.PerhapsRevised(in.Objects, in.Manner, in.Places, in.Desired, *a, c)) {
			continue
		}

		external = allowance.Merge(external, grant.RidingAlong(in.Authority.Policies, in.Above, *a))

		if best == nil || grant.CompareRank(*a, *best) < 0 {
			best = a
		}
	}

	if best == nil {
		return finding.Finding{}, false
	}

	return finding.Finding{Policy: best.Policy, Approval: best.Approval, Digest: best.Digest, Cause: finding.Cause{
		Initiator: best.Initiator, Trace: in.Objects.Moved(best.Trace), External: external, Propagated: true, By: best,
	}}, true
}
