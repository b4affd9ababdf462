// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAnXRThatForgotWhatItIsMadeOfReportsHowToHeal(t *testing.T) {
	t.Parallel()

	const (
		waits   = ", finalizers: [" + v1alpha1.Finalizer + "]"
		refers  = "{apiVersion: mr.example.org/v1, kind: Bucket, name: b}"
		ownedBy = ", namespace: a, ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]"
	)

	xr := func(metadata, refs string) *unstructured.Unstructured {
		return fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, uid: s"+metadata+"}, "+
			"spec: {crossplane: {resourceRefs: ["+refs+"]}}}")
	}

	cases := map[string]struct {
		reason       string
		cached, live *unstructured.Unstructured
		events       int
		written      bool
	}{
		"Refers": {
			reason: "It is as it should be.",
			cached: xr(waits, refers), live: xr(waits, refers),
		},
		"Behind": {
			reason: "The cache does not know the newest reference, nor the finalizer that came with it.",
			cached: xr("", ""), live: xr(waits, refers),
		},
		"Emptied": {
			reason: "It is told on both, once, also by a manager that is another one.",
			cached: xr(waits, ""), live: xr(waits, ""), events: 2,
		},
		"Unkept": {
			reason: "Nobody gave it our finalizer.",
			cached: xr("", refers), live: xr("", refers), written: true,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			child := fixture.Parse(t, bucket(ownedBy, "managementPolicies: [Observe]"))
			o, c := owning(t, tc.live, child)
			written := 0
			o.Client = behind{was: tc.cached, Client: interceptor.NewClient(c, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					written++

					return c.Apply(ctx, obj, opts...)
				},
			})}

			for range 3 {
				left, err := NewLeftovers(prometheus.NewRegistry(), c, c, "", gate.Options{}, time.Now)
				if err != nil {
					t.Fatal(err)
				}

				o.Leftovers = left
				if err := o.EnsureFinalizer(t.Context(), child); err != nil {
					t.Fatal(err)
				}
			}

			if want := tc.written; (written > 0) != want {
				t.Errorf("%s\nwritten %d times, want writes: %t", tc.reason, written, want)
			}

			list := told(t, c)
			if len(list) != tc.events {
				t.Fatalf("%s\n%d events, want %d: %v", tc.reason, len(list), tc.events, list)
			}

			for _, e := range list {
				if !strings.Contains(e.Note, "kubectl kausality adopt Bucket.mr.example.org/b") {
					t.Errorf("%s\nIt says %q", tc.reason, e.Note)
				}
			}
		})
	}
}
