// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAShardThatNoManagerRunsForIsReportedOnce(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	lease := func(holder string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kausality-system", Name: LeaseName("large")},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: new(int32(15)),
			},
		}
	}

	cases := map[string]struct {
		reason string
		lease  *coordinationv1.Lease
		shard  string
		told   int
		gauge  map[string]float64
		again  time.Duration
	}{
		"NoLease":  {reason: "Nobody ever ran.", shard: "large", told: 1, gauge: map[string]float64{"large": 1}, again: attendEvery},
		"Expired":  {reason: "Who ran does not any more.", lease: lease("a", now.Add(-time.Minute)), shard: "large", told: 1, gauge: map[string]float64{"large": 1}, again: attendEvery},
		"Released": {reason: "Who ran has given it up.", lease: lease("", now), shard: "large", told: 1, gauge: map[string]float64{"large": 1}, again: attendEvery},
		"Runs":     {reason: "One runs.", lease: lease("a", now.Add(-time.Second)), shard: "large", gauge: map[string]float64{"large": 0}, again: attendEvery},
		"Empty":    {reason: "No namespace is in it.", shard: "small", gauge: map[string]float64{}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(coordinationv1.AddToScheme(scheme), corev1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
				t.Fatal(err)
			}

			b := fake.NewClientBuilder().WithScheme(scheme)
			if tc.lease != nil {
				b = b.WithObjects(tc.lease)
			}

			part, err := New("")
			if err != nil {
				t.Fatal(err)
			}

			ns := Namespace()
			ns.SetName("team")
			ns.SetLabels(map[string]string{v1alpha1.LabelShard: "large"})

			known := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
			if err := known.Add(ns); err != nil {
				t.Fatal(err)
			}

			part.namespaces.Store(&known)

			reg, recorder := prometheus.NewRegistry(), events.NewFakeRecorder(10)

			x, err := NewUnattended(reg, part, b.Build(), recorder, "kausality-system", func() time.Time { return now })
			if err != nil {
				t.Fatal(err)
			}

			if _, err := x.Controller(&informertest.FakeInformers{Scheme: scheme}, logr.Discard()); err != nil {
				t.Fatal(err)
			}

			for range 2 { // Nobody is informed twice.
				got, err := x.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: tc.shard}})
				if err != nil || got.RequeueAfter != tc.again {
					t.Errorf("%s\nagain after %s, want %s; %v", tc.reason, got.RequeueAfter, tc.again, err)
				}
			}

			if n := len(recorder.Events); n != tc.told {
				t.Errorf("%s\n%d events, want %d", tc.reason, n, tc.told)
			}

			if diff := cmp.Diff(tc.gauge, fixture.Gauges(t, reg, "kausality_shard_unattended")); diff != "" {
				t.Errorf("%s\ngauge, -want, +got:\n%s", tc.reason, diff)
			}

			// Once no namespace is in it any more, there is nothing to know.
			known.Delete(ns) //nolint:errcheck // It has a key.

			if got, err := x.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: tc.shard}}); err != nil || got.RequeueAfter != 0 {
				t.Errorf("without a namespace: %v, %v", got, err)
			}

			if left := fixture.Gauges(t, reg, "kausality_shard_unattended"); len(left) > 0 {
				t.Errorf("without a namespace: %v", left)
			}
		})
	}
}

func TestALeaseThatCannotBeReadIsAnError(t *testing.T) {
	part, err := New("")
	if err != nil {
		t.Fatal(err)
	}

	ns := Namespace()
	ns.SetName("team")
	ns.SetLabels(map[string]string{v1alpha1.LabelShard: "large"})

	known := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	if err := known.Add(ns); err != nil {
		t.Fatal(err)
	}

	part.namespaces.Store(&known)

	live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return fixture.ErrRefused
		},
	}).Build()

	x, err := NewUnattended(prometheus.NewRegistry(), part, live, events.NewFakeRecorder(1), "kausality-system", time.Now)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := x.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "large"}}); !errors.Is(err, fixture.ErrRefused) {
		t.Errorf("error %v", err)
	}
}
