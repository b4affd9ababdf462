// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func listed(status, message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": v1alpha1.ConditionState, "status": status, "message": message},
	}}}}
}

func entries(n, size int) []v1alpha1.HeldChange {
	out := make([]v1alpha1.HeldChange, n)
	for i := range out {
		out[i] = v1alpha1.HeldChange{
			Ref: v1alpha1.ObjectReference{APIVersion: "a/v1", Kind: "K", Name: "n"}, Field: fmt.Sprintf("spec.f%d", i),
			To: strings.Repeat("<&>", size/3), Digest: "sha256:" + strings.Repeat("0", 64), Missing: strings.Repeat("m", size),
		}
	}

	return out
}

// TestAListIsReadAsItWasWritten and not where the pipeline failed after it.
func TestAListIsReadAsItWasWritten(t *testing.T) {
	want := v1alpha1.State{V: 1, Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 3}, Revision: "r-1", Changes: entries(3, 128), Approvals: []v1alpha1.ApprovalUse{{Approval: "u", Digest: "d", State: v1alpha1.ApprovalUsed}}}

	got, ok := resource.StateOf(listed("False", resource.FormatState(want)))
	if !ok {
		t.Fatal("it is not read")
	}

	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	for name, u := range map[string]*unstructured.Unstructured{
		"failed": listed("Unknown", resource.FormatState(want)), "words": listed("False", "A fatal error occurred"), "none": {Object: map[string]any{}},
	} {
		if _, ok := resource.StateOf(u); ok {
			t.Errorf("%s: a list is read", name)
		}
	}
}

// TestAListFitsIntoACondition whatever is held, and counts what it leaves out.
func TestAListFitsIntoACondition(t *testing.T) {
	for _, tc := range []struct{ n, size int }{{0, 0}, {10, 100}, {50, 1000}, {100, 128}, {5000, 128}, {3, 40000}} {
		text := resource.FormatState(v1alpha1.State{V: 1, Changes: entries(tc.n, tc.size)})
		if len(text) > v1alpha1.MaxStateBytes {
			t.Errorf("%d of %d: %d bytes", tc.n, tc.size, len(text))
		}

		got, ok := resource.StateOf(listed("False", text))
		if !ok || len(got.Changes)+got.More != tc.n {
			t.Fatalf("%d of %d: %d listed, %d more", tc.n, tc.size, len(got.Changes), got.More)
		}

		// One more would not have fitted.
		if got.More > 0 {
			longer := *got
			longer.Changes, longer.More = entries(tc.n, tc.size)[:len(got.Changes)+1], got.More-1
			longer.Changes[len(got.Changes)].Missing = ""

			for i := range longer.Changes {
				longer.Changes[i].Missing = ""
			}

			if again := resource.FormatState(longer); strings.Count(again, `"field"`) > len(got.Changes) {
				t.Errorf("%d of %d: %d are listed, and one more fits", tc.n, tc.size, len(got.Changes))
			}
		}
	}
}

// TestWhatWasLetPassGivesWayToWhatIsHeld where not all fits, and is counted.
func TestWhatWasLetPassGivesWayToWhatIsHeld(t *testing.T) {
	for _, tc := range []struct{ held, passed, size, wantPassed int }{{5, 5, 100, 5}, {5, 300, 128, 0}, {300, 5, 128, 0}, {5, 30, 128, 30}} {
		text := resource.FormatState(v1alpha1.State{V: 1, Changes: entries(tc.held, tc.size), Passed: entries(tc.passed, tc.size)})

		got, ok := resource.StateOf(listed("False", text))
		if !ok || len(text) > v1alpha1.MaxStateBytes {
			t.Fatalf("%+v: %d bytes, read %t", tc, len(text), ok)
		}

		if len(got.Passed) != tc.wantPassed || len(got.Passed)+got.PassedMore != tc.passed || len(got.Changes)+got.More != tc.held {
			t.Errorf("%+v: %d passed and %d more, %d held and %d more", tc, len(got.Passed), got.PassedMore, len(got.Changes), got.More)
		}
	}
}
