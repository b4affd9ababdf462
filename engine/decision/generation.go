// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// predictGeneration is the generation that the API server will give the new
// object: a mutating webhook runs before it is bumped.
func predictGeneration(o objects, changes, back []change.Change) int64 {
	if o.Old == nil {
		return 1
	}

	generation := resource.Generation(o.Old)

	for _, c := range changes {
		if (!c.Metadata() || bumpsGeneration(o.Old)) && !takenBack(back, c) { // Our annotations are changes too.
			return generation + 1
		}
	}

	return max(generation, 1)
}

// requestNumber is which request within its generation a change of the object is: 0
// where it makes the generation. A deletion needs no number, for there is one.
func requestNumber(o objects, earlier earlier, generation int64) int64 {
	if o.Operation != OperationUpdate {
		return 0
	}

	if len(earlier.approved) > 0 && resource.ObservedGeneration(o.Old) > 0 {
		return 0 // What follows is what the generation asks for, which is there already.
	}

	if was := resource.Generation(o.Old); was > 0 && generation > was {
		return 0
	}

	return allowance.LastRequest(o.Old, generation) + 1
}
