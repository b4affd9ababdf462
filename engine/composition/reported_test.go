// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// TestWhatAFunctionListsIsReported as it described it, but what it held of the XR itself: that is in the XR's annotation.
func TestWhatAFunctionListsIsReported(t *testing.T) {
	t.Parallel()

	change := func(name, field string) v1alpha1.HeldChange {
		return v1alpha1.HeldChange{
			Ref:              v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Object", Name: name},
			ComposedResource: "data", Field: field, From: "a", To: "b", Missing: "why", Cause: &v1alpha1.Cause{Type: v1alpha1.CausePipeline},
		}
	}

	held := []condition.Held{
		{Resource: "Object o-1", Change: change("o-1", "spec.size")},
		{Resource: "Object of composed resource data", Change: change("o-2", v1alpha1.MutationCreate)},
		{Resource: "Object o-3", Change: change("o-3", v1alpha1.MutationDelete), Passed: true},
	}
	onXR := condition.Held{Resource: "XBucket b", Change: v1alpha1.HeldChange{Field: "spec.size"}, OnXR: true}

	xr := object(t, "{apiVersion: example.org/v1, kind: XBucket, metadata: {name: b, generation: 3}}")
	state := condition.List(xr, &condition.Status{Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled}}, nil, append([]condition.Held{onXR}, held...), nil, false)

	says := func(status string) *unstructured.Unstructured {
		out := xr.DeepCopy()
		out.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": v1alpha1.ConditionState, "status": status, "message": resource.FormatState(state),
		}}}

		return out
	}

	got, more, ok := condition.Reported(says("False"))
	if diff := cmp.Diff(held, got); diff != "" || more != 0 || !ok {
		t.Errorf("%d more, %t, -want, +got:\n%s", more, ok, diff)
	}

	for i, h := range got {
		if want := held[i].String(); h.String() != want {
			t.Errorf("%q, want %q", h, want)
		}
	}

	if _, _, ok := condition.Reported(says("Unknown")); ok {
		t.Error("what Crossplane took away is reported")
	}
}
