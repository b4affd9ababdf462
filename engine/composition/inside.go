// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// heldInside is what a managed resource's gate did not let out, and what its pipeline
// wishes all the same: there is no change to hold any more, and the external object
// is still as it was. What this run changes anyhow, or holds, is left out.
func (r *Request) heldInside(wished *unstructured.Unstructured, findings []decision.Finding) []Held {
	if r.Mode == v1alpha1.ModeAudit {
		return nil
	}

	list, err := gate.InsideOf(r.Observed)
	if err != nil || len(list) == 0 {
		return nil // An error is reported with the decision.
	}

	var out []Held

	asks := decision.Request{
		Operation: decision.OperationUpdate, Old: r.Observed, New: r.Observed, User: r.User, Parent: r.XR,
		Basis: r.Basis,
	}
	moves := change.Between(r.Observed.Object, wished.Object)

	for _, in := range list {
		if slices.ContainsFunc(moves, func(c change.Change) bool { return overlap(c.Path, in.Change.Path) }) ||
			slices.ContainsFunc(findings, func(f decision.Finding) bool { return overlap(f.Change.Path, in.Change.Path) }) {
			continue
		}

		reason := "it " + decision.StoredBy(in.User, in.Since) + ", and the gate did not let it out: " + decision.RemedyForStored(asks, in.Change)
		h := r.heldAsIs(decision.HeldBetween(in.Change, reason, r.Observed.Object, wished.Object))
		h.Inside, h.Entry.Cause = true, &v1alpha1.Cause{Type: v1alpha1.CauseDrift, User: in.User}

		out = append(out, h)
	}

	return out
}

// overlap reports whether one of two paths leads to the other.
func overlap(a, b change.Path) bool {
	n := min(len(a), len(b))

	return slices.Equal(a[:n], b[:n])
}
