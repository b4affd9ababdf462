// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// TestAskedAgainTheAnswerIsTheSame asks about what was decided: once as another
// mutating webhook makes the API server do, and once as the validating webhook
// sees it.
func TestAskedAgainTheAnswerIsTheSame(t *testing.T) {
	for name, req := range requests(t) {
		first := decision.Decide(req)
		if first.Answer().Final || req.New == nil || first.Object == nil {
			continue
		}

		t.Run(name, func(t *testing.T) {
			req.New = first.Object

			again := decision.Decide(req)
			if diff := cmp.Diff(first.Object, again.Object); diff != "" {
				t.Errorf("Asked again, -first, +again:\n%s", diff)
			}

			if len(again.Overruled)+len(again.Forged) > 0 {
				t.Errorf("Asked again: overruled %v, forged %v", again.Overruled, again.Forged)
			}

			final := decision.Verify(req)

			// What is held was taken back before, and is no change any more.
			if a, b := first.Answer(), final.Answer(); a.Refuses() != b.Refuses() || a.Reason != b.Reason {
				t.Errorf("Verify: %+v, want %+v", b, a)
			}
		})
	}
}

// TestWhatWasNotStampedIsAConflict verifies requests that were never decided
// before.
func TestWhatWasNotStampedIsAConflict(t *testing.T) {
	conflicts := 0

	for name, req := range requests(t) {
		if first := decision.Decide(req); first.Object == nil || req.New == nil || len(first.Held) == 0 {
			continue
		}

		if final := decision.Verify(req); final.Conflict == "" && !final.Allowed() {
			t.Errorf("%s: verified: no conflict, though %d changes are held", name, len(final.Findings))
		} else if final.Conflict != "" {
			conflicts++
		}
	}

	if conflicts == 0 {
		t.Error("no scenario gave a conflict")
	}
}

// TestWhatAnotherWebhookMakesOfOurAnnotationsIsAConflict verifies what is stored with an allowance that nobody gave, and
// with a trace of somebody else.
func TestWhatAnotherWebhookMakesOfOurAnnotationsIsAConflict(t *testing.T) {
	const (
		given  = "- kind: Secret\n  mutation: create\n  generation: 1\n  initiator: mallory\n  trace:\n  - kind: Widget\n    name: w\n    generation: 1\n    field: spec\n"
		traced = "- field: spec\n  generation: 1\n  initiator: mallory\n  trace:\n  - kind: Widget\n    name: w\n    generation: 1\n    field: spec\n"
	)

	checked := map[string]int{}

	for name, req := range requests(t) {
		first := decision.Decide(req)
		if first.Answer().Final || req.New == nil || first.Object == nil || !first.Allowed() {
			continue
		}

		if first.Action != v1alpha1.ActionDeny && first.Action != v1alpha1.ActionHold {
			continue // It tells, and refuses nothing.
		}

		for key, value := range map[string]string{v1alpha1.AnnotationAllowances: given, v1alpha1.AnnotationTrace: traced} {
			was := resource.Annotation(first.Object, key)
			if was == "" {
				continue
			}

			other := first.Object.DeepCopy()
			annotations := other.GetAnnotations()
			annotations[key] = value + strings.TrimPrefix(was, "[]\n")
			other.SetAnnotations(annotations)

			stored := req
			stored.New = other
			checked[key]++

			if got := decision.Verify(stored); !strings.Contains(got.Conflict, key) {
				t.Errorf("%s: another %s is stored, and the conflict is %q", name, key, got.Conflict)
			}
		}
	}

	if len(checked) < 2 {
		t.Errorf("scenarios by annotation: %v", checked)
	}
}
