// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// LongHeld is for how long a change may be held before nobody seems to care.
const LongHeld = 24 * time.Hour

// HeldOf judges what the webhook holds of an object, by its record of that. Since when
// is not recorded.
func HeldOf(u *unstructured.Unstructured) []Finding {
	list, err := allowance.ParseHeld(u)
	if err != nil || len(list) == 0 { // See [Misread].
		return nil
	}

	texts := make([]string, 0, len(list))
	for _, h := range list {
		texts = append(texts, textOf(h))
	}

	f := newFinding(Held, RefOf(u), joined(texts), remedyHeld(u))
	f.Part = partObject

	return []Finding{f}
}

// textOf says what is held, and what it lacks.
func textOf(h v1alpha1.HeldChange) string {
	if n, some := allowance.MoreHeld(h); some {
		return more(n)
	}

	by := ""
	if allowance.Author(h) != "" {
		by = ", requested by " + allowance.Author(h)
	}

	switch h.Field {
	case v1alpha1.MutationCreate:
		return fmt.Sprintf("it is not created%s: %s", by, h.Missing)
	case v1alpha1.MutationDelete:
		return fmt.Sprintf("it is not deleted%s: %s", by, h.Missing)
	default:
		return decision.Describe(h) + by + ": " + h.Missing
	}
}

// Parts of an object that are held apart.
const (
	// partObject is what the webhook holds of the object itself.
	partObject = "object"
	// partComposed is what the function holds of what an XR composes.
	partComposed = "composed"
)

func remedyHeld(u *unstructured.Unstructured) string {
	return "have it asked for by who may, or take it back: kubectl kausality trace " + resource.Argument(u) + " says what it lacks"
}

// Waiting judges what the function holds of what an XR composes, and what passed in mode Audit: of a Claim by the text of its
// condition.
func Waiting(u *unstructured.Unstructured) []Finding {
	c, ok := resource.ConditionOf(u, v1alpha1.ConditionKausality)
	if !ok || c.Reason != v1alpha1.ReasonHeld {
		return nil
	}

	since, _ := time.Parse(time.RFC3339, c.LastTransitionTime) // Without it, since when is not known.

	list, left, read := condition.Reported(u)
	if !read {
		f := newFinding(Held, RefOf(u), c.Message, remedyHeld(u)).since(since)
		f.Part = partComposed

		return []Finding{f}
	}

	var held, passed []string

	for _, h := range list {
		if h.Passed {
			passed = append(passed, h.String())
		} else {
			held = append(held, h.String())
		}
	}

	var out []Finding

	if len(held) > 0 || left > 0 && len(passed) == 0 {
		if left > 0 {
			held = append(held[:min(len(held), maxNamed-1)], more(left+max(0, len(held)-maxNamed+1)))
		}

		f := newFinding(Held, RefOf(u), joined(held), remedyHeld(u)).since(since)
		f.Part = partComposed
		out = append(out, f)
	}

	if len(passed) > 0 {
		out = append(out, newFinding(PassedNotAllowed, RefOf(u), joined(passed),
			"give the function's input mode Hold, once its reports show what it would hold").since(since))
	}

	return out
}

// aged makes what is held for long weigh more.
func aged(f Finding, now time.Time) Finding {
	if f.Rule == Held && f.Since != nil && now.Sub(f.Since.Time) > LongHeld {
		f.Severity, f.Result = Medium, Fail
	}

	return f
}

// heldBy judges what is held of an object by the webhook, and of what it composes by the function.
func heldBy(u *unstructured.Unstructured) []Finding { return append(Waiting(u), HeldOf(u)...) }
