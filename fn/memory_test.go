// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"strconv"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
)

// TestTheFunctionDoesNotRememberEveryXR so that its memory is bounded: of too many
// it forgets the one that it was called for least lately.
func TestTheFunctionDoesNotRememberEveryXR(t *testing.T) {
	remembered := newReports()
	at := heldField{resource: "Object db", field: "spec.size"}
	held := heldSet{lines: map[heldField]heldLine{at: {change: v1alpha1.HeldChange{Field: "spec.size", To: "large"}}}}

	for i := range maxReports + 1 {
		if was := remembered.swap(strconv.Itoa(i), held); len(was.lines) > 0 {
			t.Fatalf("XR %d is known", i)
		}
	}

	if was := remembered.swap(strconv.Itoa(maxReports), held); len(was.lines) != 1 {
		t.Error("the newest is forgotten")
	}

	if was := remembered.swap("0", held); len(was.lines) > 0 {
		t.Error("the oldest is remembered")
	}

	remembered.swap("0", heldSet{})

	if n := remembered.xrs.Len(); n != maxReports-1 {
		t.Errorf("%d XRs are remembered, want %d: of one that holds nothing there is nothing to remember", n, maxReports-1)
	}
}

// TestTheFunctionLogsSoManyChangesOfAnXR and of the others how many they are.
func TestTheFunctionLogsSoManyChangesOfAnXR(t *testing.T) {
	s := &state{names: []string{"a"}, outcomes: map[string]composition.Result{}}

	var out composition.Result
	for i := range maxReportLines + 5 {
		out.Held = append(out.Held, condition.Held{Resource: "Object db", Change: v1alpha1.HeldChange{Field: "spec.f" + strconv.Itoa(i)}})
	}

	s.outcomes["a"] = out

	if got := s.heldSet(); len(got.lines) != maxReportLines || got.more != 5 {
		t.Errorf("%d lines and %d more, want %d and 5", len(got.lines), got.more, maxReportLines)
	}
}
