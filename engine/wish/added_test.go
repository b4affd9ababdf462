// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// TestWhatAdmissionAddsToAListStays adds elements to a list that is replaced as a
// whole, as the API server does to the tolerations of pods.
func TestWhatAdmissionAddsToAListStays(t *testing.T) {
	const tolerations = "spec.template.spec.tolerations"

	s := newServer(t)
	s.tolerations = []corev1.Toleration{
		{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute},
		{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute},
	}

	s.compose(bakery, false)
	before := s.live.DeepCopy()

	if got := resource.List(s.live.Object, "spec", "template", "spec", "tolerations"); len(got) != 4 {
		t.Fatalf("tolerations: %v", got)
	}

	want(t, "the same wish", s.compose(bakery, true))

	changed := swap(bakery, "{key: zone, value: a}", "{key: zone, value: b}")
	want(t, "changed", s.compose(changed, true), tolerations+"[1].value")
	want(t, "taken back", s.compose(bakery, true))

	if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff != "" {
		t.Errorf("nothing was allowed, -before, +after:\n%s", diff)
	}

	want(t, "allowed", s.compose(changed, false), tolerations+"[1].value")
	want(t, "applied", s.compose(changed, true))

	// An element that was wished is no addition.
	without := swap(changed, ", {key: zone, value: b}", "")

	if got := s.compose(without, false); len(got.changes) == 0 {
		t.Error("removed: no change is seen")
	}

	want(t, "gone", s.compose(without, true))

	if got := resource.List(s.live.Object, "spec", "template", "spec", "tolerations"); len(got) != 3 {
		t.Errorf("tolerations: %v", got)
	}
}
