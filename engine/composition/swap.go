// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
)

// swap puts a resource of another kind or group in the place of one: it deletes
// that, and makes the other once it is gone. Nothing is deleted unless its
// successor may be made.
func (r composed) swap(asker *asker, other *Other, room int) Result {
	before, after := r, r
	before.Desired, after.Observed = nil, nil

	if other != nil {
		after.Name = other.Name
	}

	made := after.create(asker, room)
	out := before.remove(asker)
	deletes := len(out.Held) == 0

	out.Held = slices.Concat(out.Held, made.Held)
	out.Problems = slices.Concat(out.Problems, made.Problems)
	out.Costs = slices.Concat(out.Costs, made.Costs)

	switch {
	case r.mode == v1alpha1.ModeAudit || len(out.Held) == 0:
		out.Passed = slices.Concat(out.Passed, made.Passed)

		return out
	case !deletes:
		out.Awaiting = awaiting(made.Passed)
		out.Withheld = out.Withheld.And(made.Withheld)

		return out
	}

	kept := r.kept()
	kept.Awaiting = awaiting(out.Passed)
	kept.Withheld, kept.Asked = out.Withheld.And(made.Withheld), true
	kept.Held, kept.Problems, kept.Costs = out.Held, slices.Concat(out.Problems, kept.Problems), out.Costs

	return kept
}

// awaiting are changes that are allowed, and not made yet.
func awaiting(passed []condition.Passed) []condition.Passed {
	out := slices.Clone(passed)
	for i := range out {
		out[i].Awaits = true
	}

	return out
}
