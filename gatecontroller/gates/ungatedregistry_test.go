// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
)

func TestTheFirstAndTheLastUngatedResourceOfAKindArePrompted(t *testing.T) {
	x := NewUngated(watch.NewPrompt())
	gvk := schema.GroupVersionKind{Group: "nop.crossplane.io", Version: "v1alpha1", Kind: "NopResource"}

	for i, step := range []struct {
		name               string
		is, isNew, prompts bool
		count              int
	}{
		{"a", false, false, false, 0},
		{"a", true, true, true, 1},
		{"a", true, false, false, 1},
		{"b", true, true, false, 2},
		{"a", false, false, false, 1},
		{"c", false, false, false, 1},
		{"b", false, false, true, 0},
	} {
		if got := x.Set(gvk, types.NamespacedName{Name: step.name}, step.is); got != step.isNew {
			t.Errorf("step %d: new %v, want %v", i, got, step.isNew)
		}

		prompted := false
		select {
		case <-x.Prompt.Now:
			prompted = true
		default:
		}

		if got := x.Count(gvk.GroupKind()); got != step.count || prompted != step.prompts {
			t.Errorf("step %d: %d, prompted %v, want %d, %v", i, got, prompted, step.count, step.prompts)
		}
	}

	x.Set(gvk, types.NamespacedName{Name: "a"}, true)
	x.Keep([]kind.Served{{GVK: schema.GroupVersionKind{Kind: "Other"}}})

	if got := x.Count(gvk.GroupKind()); got != 0 {
		t.Errorf("of a kind that is no longer watched: %d", got)
	}
}
