// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
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
		"Emptied": {reason: "It is told on both, once, also by a manager that is another one.", cached: xr(), live: xr(), want: 2},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, c, _ := leaving(t, nil, tc.live)

			for range 3 {
				left, err := NewLeftovers(prometheus.NewRegistry(), c, c, "", gate.Options{}, time.Now)
				if err != nil {
					t.Fatal(err)
				}

				if err := (&Owners{Live: c, Leftovers: left}).warnUnreferenced(t.Context(), managed, tc.cached); err != nil {
					t.Fatal(err)
				}
			}

			list := told(t, c)
			if len(list) != tc.want {
				t.Fatalf("%s\n%d events, want %d: %v", tc.reason, len(list), tc.want, list)
			}

			for _, e := range list {
				if !strings.Contains(e.Note, "kubectl kausality adopt Object.kubernetes.m.crossplane.io/corner-x") {
					t.Errorf("%s\nIt says %q", tc.reason, e.Note)
				}
			}
		})
	}
}
