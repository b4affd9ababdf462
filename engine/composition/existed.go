// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// heldOutside is what a managed resource's gate prevents on an external object
// that existed before it.
func (r composed) heldOutside() []Held {
	observed := r.Observed

	desired, err := gate.Desired(observed)
	if err != nil || !slices.Contains(desired, gate.ActionUpdate) || !gate.Existing(observed) {
		return nil
	}

	reason := fmt.Sprintf("the external object existed before %s, and External Update is not allowed for all differences: "+
		"set the values of the external object, or add an AllowancePolicy that allows External Update with create of %s",
		describe(observed), observed.GetKind())

	var out []Held

	for _, c := range gate.Differing(observed) {
		out = append(out, r.heldAsIs(hold.HeldBetween(c, reason, observed.Object)))
	}

	return out
}
