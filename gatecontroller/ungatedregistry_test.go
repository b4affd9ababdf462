// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheFirstAndTheLastUngatedResourceOfAKindArePrompted(t *testing.T) {
	x := newUngated(newPrompt())
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
		if got := x.set(gvk, types.NamespacedName{Name: step.name}, step.is); got != step.isNew {
			t.Errorf("step %d: new %v, want %v", i, got, step.isNew)
		}

		prompted := false
		select {
		case <-x.prompt.now:
			prompted = true
		default:
		}

		if got := x.count(gvk.GroupKind()); got != step.count || prompted != step.prompts {
			t.Errorf("step %d: %d, prompted %v, want %d, %v", i, got, prompted, step.count, step.prompts)
		}
	}

	x.set(gvk, types.NamespacedName{Name: "a"}, true)
	x.keep([]servedKind{{gvk: schema.GroupVersionKind{Kind: "Other"}}})

	if got := x.count(gvk.GroupKind()); got != 0 {
		t.Errorf("of a kind that is no longer watched: %d", got)
	}
}
