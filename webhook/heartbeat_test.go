// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
