// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

func heldFields(n, reason int) []v1alpha1.HeldChange {
	out := make([]v1alpha1.HeldChange, n)
	for i := range out {
		out[i] = v1alpha1.HeldChange{Field: fmt.Sprintf("spec.f%04d", i), From: "a", To: "b", Missing: strings.Repeat("x", reason)}
	}

	return out
}

func TestAListOfWhatIsHeldKeepsToItsBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		held   []v1alpha1.HeldChange
		want   int
	}{
		"Nothing":     {"Nothing is listed of nothing.", nil, 0},
		"AllFit":      {"As many as may be are listed, and no count.", heldFields(v1alpha1.MaxHeldEntries, 10), v1alpha1.MaxHeldEntries},
		"OneTooMany":  {"The last place is the count's.", heldFields(v1alpha1.MaxHeldEntries+1, 10), v1alpha1.MaxHeldEntries},
		"TooLong":     {"Long ones are fewer.", heldFields(40, 1024), 16},
		"FarTooLong":  {"Not even one may fit.", heldFields(3, v1alpha1.MaxHeldBytes), 1},
		"JustTooLong": {"The count itself fits too.", heldFields(16, 1000), 16},
	} {
		t.Run(name, func(t *testing.T) {
			got := allowance.ListHeld(tc.held)
			if len(got) != tc.want {
				t.Errorf("%s: %d entries, want %d", tc.reason, len(got), tc.want)
			}

			if size := len(allowance.FormatList(got)); size > v1alpha1.MaxHeldBytes {
				t.Errorf("%s: %d bytes, %d is the most", tc.reason, size, v1alpha1.MaxHeldBytes)
			}

			total := 0
			for _, h := range got {
				if n, ok := allowance.MoreHeld(h); ok {
					total += n
				} else {
					total++
				}
			}

			if total != len(tc.held) {
				t.Errorf("%s: it tells of %d, want %d", tc.reason, total, len(tc.held))
			}

			if diff := cmp.Diff(got, allowance.ListHeld(got)); diff != "" {
				t.Errorf("%s: listed again, -first, +again:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWhatAnEarlierListLeftOutCountsOn(t *testing.T) {
	first := allowance.ListHeld(heldFields(100, 10))
	again := allowance.ListHeld(append(first, v1alpha1.HeldChange{Field: "spec.z", Missing: "late"}))

	if n, ok := allowance.MoreHeld(again[len(again)-1]); !ok || n != 38 {
		t.Errorf("the last entry is %v, want one for 38", again[len(again)-1])
	}
}

func TestAFieldInBracketsIsNoCount(t *testing.T) {
	for _, field := range []string{"spec.more", "(more)", "(x more)", "(0 more)", "(-1 more)", "(2 more"} {
		if n, ok := allowance.MoreHeld(v1alpha1.HeldChange{Field: field}); ok {
			t.Errorf("%s stands for %d", field, n)
		}
	}
}
