// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestTheEndOfAnExceptionIsTold(t *testing.T) {
	reg := prometheus.NewRegistry()
	recorder := events.NewFakeRecorder(10)

	x, err := NewExceptions(reg, recorder)
	if err != nil {
		t.Fatal(err)
	}

	list := fixture.Documents[v1alpha1.Enforcement](t, `{metadata: {name: e}, spec: {match: {resourceRules: []}, validationActions: [Deny], exceptions: [
		{name: long, subjects: [], mutations: [spec], until: "2026-06-01T00:00:00Z", reason: A-1},
		{name: soon, subjects: [], mutations: [spec], until: "2026-01-02T00:00:00Z", reason: A-2},
		{name: over, subjects: [], mutations: [spec], until: "2026-01-01T00:00:00Z", reason: A-3}]}}`)
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

	x.Set(list, now)
	x.Set(list, now.Add(time.Minute)) // Nobody is told twice.

	if diff := cmp.Diff(map[string]float64{"long": 0, "soon": 1, "over": 2}, fixture.Gauges(t, reg, "kausality_enforcement_exception_ending")); diff != "" {
		t.Errorf("ending, -want, +got:\n%s", diff)
	}

	if got := fixture.Gauges(t, reg, "kausality_enforcement_exception_until_timestamp_seconds")["soon"]; int64(got) != now.Add(12*time.Hour).Unix() {
		t.Errorf("until %v", got)
	}

	if n := len(recorder.Events); n != 1 {
		t.Fatalf("%d events, want 1", n)
	}

	if got, want := <-recorder.Events, `Warning KausalityExceptionEnds the exception "soon" (A-2) ends at 2026-01-02T00:00:00Z`; got != want {
		t.Errorf("event %q, want %q", got, want)
	}

	x.Set(nil, now)

	if got := fixture.Gauges(t, reg, "kausality_enforcement_exception_ending"); len(got) > 0 {
		t.Errorf("of no Enforcements: %v", got)
	}
}
