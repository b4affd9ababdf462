// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestTheEndOfAnExceptionIsReported(t *testing.T) {
	reg := prometheus.NewRegistry()
	recorder := events.NewFakeRecorder(10)

	list := fixture.Documents[v1alpha1.Enforcement](t, `{metadata: {name: e}, spec: {match: {resourceRules: []}, validationActions: [Deny], exceptions: [
		{name: long, subjects: [], mutations: [spec], until: "2026-06-01T00:00:00Z", reason: A-1},
		{name: soon, subjects: [], mutations: [spec], until: "2026-01-02T00:00:00Z", reason: A-2},
		{name: over, subjects: [], mutations: [spec], until: "2026-01-01T00:00:00Z", reason: A-3}]}}`)
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&list[0]).Build()

	x, err := NewExceptions(reg, c, recorder, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}

	look := func(want time.Duration) {
		t.Helper()

		got, err := x.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "e"}})
		if err != nil || got.RequeueAfter != want {
			t.Fatalf("Reconcile: again after %s, want %s; %v", got.RequeueAfter, want, err)
		}
	}

	// When the next one ends.
	look(12 * time.Hour)

	now = now.Add(time.Minute) // Nobody is informed twice.

	look(12*time.Hour - time.Minute)

	if diff := cmp.Diff(map[string]float64{"long": 0, "soon": 1, "over": 2}, fixture.Gauges(t, reg, "kausality_enforcement_exception_ending")); diff != "" {
		t.Errorf("ending, -want, +got:\n%s", diff)
	}

	if got := fixture.Gauges(t, reg, "kausality_enforcement_exception_until_timestamp_seconds")["soon"]; int64(got) != now.Add(12*time.Hour-time.Minute).Unix() {
		t.Errorf("until %v", got)
	}

	if n := len(recorder.Events); n != 1 {
		t.Fatalf("%d events, want 1", n)
	}

	if got, want := <-recorder.Events, `Warning KausalityExceptionEnds the exception "soon" (A-2) ends at 2026-01-02T00:00:00Z`; got != want {
		t.Errorf("event %q, want %q", got, want)
	}

	now = now.Add(12 * time.Hour) // It has ended; the end of the other one is reported a day before.

	look(time.Date(2026, time.May, 31, 0, 0, 1, 0, time.UTC).Sub(now))

	if err := c.Delete(t.Context(), &list[0]); err != nil {
		t.Fatal(err)
	}

	look(0)

	if got := fixture.Gauges(t, reg, "kausality_enforcement_exception_ending"); len(got) > 0 {
		t.Errorf("of no Enforcements: %v", got)
	}
}
