// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

// metric returns the value of a metric without labels.
func metric(tb testing.TB, reg prometheus.Gatherer, name string) float64 {
	tb.Helper()

	families, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}

	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}

	tb.Fatalf("there is no metric %s", name)

	return 0
}

func TestTheAgeOfTheCacheIsThatOfTheHeartbeat(t *testing.T) {
	const name = "kausality_webhook_cache_age_seconds"

	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		c := fake.NewClientBuilder().Build()
		key := client.ObjectKey{Namespace: "kausality-system", Name: "kausality-webhook"}

		h := webhook.NewHeartbeat(c, key, logr.Discard(), time.Now)
		if err := h.Register(t.Context(), reg); err != nil {
			t.Fatal(err)
		}

		if got := metric(t, reg, name); got != -1 {
			t.Errorf("before the first: %v", got)
		}

		done := make(chan error, 1)

		go func() { done <- h.Start(t.Context()) }()

		synctest.Wait()

		for _, step := range []struct {
			after time.Duration
			want  float64
		}{{0, 0}, {4 * time.Second, 4}, {5 * time.Second, 9}, {2 * time.Second, 1}, {8 * time.Second, 9}} {
			time.Sleep(step.after)
			synctest.Wait()

			if got := metric(t, reg, name); got != step.want {
				t.Errorf("%s later: %v, want %v", step.after, got, step.want)
			}
		}
	})
}

// writes count those of a heartbeat, and the ones in vain.
type writes struct{ done, vain atomic.Int32 }

func (w *writes) count(err error) error {
	if err == nil {
		w.done.Add(1)
	} else {
		w.vain.Add(1)
	}

	return err
}

// reading is an API server that takes some time for the first read of each who reads, and a moment for the others.
func (w *writes) reading(first time.Duration) interceptor.Funcs {
	takes := first

	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)

			time.Sleep(takes)

			takes = time.Millisecond

			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return w.count(c.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return w.count(c.Update(ctx, obj, opts...))
		},
	}
}

// TestReplicasRenewOneHeartbeat once for each beat, and that another one was faster is nothing to complain of.
func TestReplicasRenewOneHeartbeat(t *testing.T) {
	const beats = 6

	for name, tc := range map[string]struct {
		reason string
		// begin are when replicas begin, and first is how long their first reads take.
		begin []time.Duration
		first time.Duration
		vain  int32
	}{
		"Together": {"Both find that it is time, and one is faster.", []time.Duration{0, 0}, time.Millisecond, beats + 1},
		"Between":  {"The second finds that the first has renewed it.", []time.Duration{0, 5 * time.Second}, time.Millisecond, 0},
		"Slow":     {"That it was late for a beat makes it skip none.", []time.Duration{0}, 900 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w writes

				all := fake.NewClientBuilder().Build()
				log := funcr.New(func(_, args string) { t.Errorf("%s\ncomplained: %s", tc.reason, args) }, funcr.Options{})

				for _, after := range tc.begin {
					c := interceptor.NewClient(all, w.reading(tc.first))
					h := webhook.NewHeartbeat(c, client.ObjectKey{Namespace: "kausality-system", Name: "kausality-webhook"}, log, time.Now)

					time.AfterFunc(after, func() { _ = h.Start(t.Context()) }) // It ends with the context.
				}

				time.Sleep(beats*10*time.Second + time.Second)
				synctest.Wait()

				if done, vain := w.done.Load(), w.vain.Load(); done != beats+1 || vain != tc.vain {
					t.Errorf("%s\nwritten %d times, and %d times in vain, want %d and %d", tc.reason, done, vain, beats+1, tc.vain)
				}
			})
		})
	}
}
