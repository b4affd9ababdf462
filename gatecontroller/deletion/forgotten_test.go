// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAnXRThatForgotWhatItIsMadeOfReportsHowToHeal(t *testing.T) {
	t.Parallel()

	xr := func(refs ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "shop.example.org/v1", "kind": "Store",
			"metadata": map[string]any{"name": "corner", "namespace": "team-a", "uid": "st"},
			"spec":     map[string]any{"crossplane": map[string]any{"resourceRefs": refs}},
		}}
	}
	managed := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object",
		"metadata": map[string]any{"name": "corner-x", "namespace": "team-a", "uid": "o"},
	}}
	ref := map[string]any{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "name": "corner-x"}

	cases := map[string]struct {
		reason       string
		cached, live *unstructured.Unstructured
		want         int
	}{
		"Refers":  {reason: "It is as it should be.", cached: xr(ref), live: xr(ref)},
		"Behind":  {reason: "The cache does not know the newest reference.", cached: xr(), live: xr(ref)},
		"Emptied": {reason: "It is told on both, once.", cached: xr(), live: xr(), want: 2},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			recorder := events.NewFakeRecorder(10)
			o := &Owners{Live: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(tc.live).Build(), Events: recorder}

			for range 2 {
				if err := o.warnUnreferenced(t.Context(), managed, tc.cached); err != nil {
					t.Fatal(err)
				}
			}

			if got := len(recorder.Events); got != tc.want {
				t.Fatalf("%s\n%d events, want %d", tc.reason, got, tc.want)
			}

			for range tc.want {
				if e := <-recorder.Events; !strings.Contains(e, "kubectl kausality adopt Object.kubernetes.m.crossplane.io/corner-x") {
					t.Errorf("%s\nIt says %q", tc.reason, e)
				}
			}
		})
	}
}
