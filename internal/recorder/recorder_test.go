// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// recorded is a recorder that notes when it was told what.
type recorded struct {
	events.EventRecorder

	since time.Time
	got   []string
}

func (r *recorded) Eventf(regarding, _ runtime.Object, typ, reason, action, note string, args ...any) {
	ref, ok := regarding.(*corev1.ObjectReference)
	if !ok {
		r.got = append(r.got, fmt.Sprintf("not a reference: %T", regarding))

		return
	}

	r.got = append(r.got, fmt.Sprintf("%s: %s %s %s %s %s: %s", time.Since(r.since), ref.Kind, ref.Name,
		typ, reason, action, fmt.Sprintf(note, args...)))
}

func newRecorded(t *testing.T) (*recorded, *Recorder, *prometheus.Registry) {
	t.Helper()

	inner, reg := &recorded{since: time.Now()}, prometheus.NewRegistry()

	r, err := New(reg, inner, runtime.NewScheme())
	if err != nil {
		t.Fatal(err)
	}

	return inner, r, reg
}

func TestEventsAreRecordedAfterWhatTheyAreAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, r, _ := newRecorded(t)
		ctx, cancel := context.WithCancel(t.Context())

		go func() { _ = r.Start(ctx) }()

		u := &unstructured.Unstructured{}
		u.SetKind("Instance")
		u.SetAPIVersion("rds.example.org/v1")
		u.SetName("db")

		r.Eventf(u, nil, "Normal", "KausalityGateOpen", "MoveGate", "%d%%", 100)
		u.SetName("another") // Whoever records an event of an object may modify it.
		time.Sleep(100 * time.Millisecond)
		r.Eventf(u, nil, "Warning", "KausalityGateClosed", "MoveGate", "closed")
		time.Sleep(time.Second)

		for i := range eventBurst + 2 {
			r.Eventf(u, nil, "Normal", "R", "A", "%d", i)
		}

		time.Sleep(time.Second)

		want := []string{
			"250ms: Instance db Normal KausalityGateOpen MoveGate: 100%",
			"350ms: Instance another Warning KausalityGateClosed MoveGate: closed",
		}
		if diff := cmp.Diff(want, inner.got[:2]); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}

		last := inner.got[2+eventBurst:]

		want = []string{
			fmt.Sprintf("1.4s: Instance another Normal R A: %d", eventBurst),
			fmt.Sprintf("1.45s: Instance another Normal R A: %d", eventBurst+1),
		}
		if diff := cmp.Diff(want, last); diff != "" {
			t.Errorf("what is too much at once: -want, +got:\n%s", diff)
		}

		r.Eventf(u, nil, "Normal", "Last", "A", "before the end")
		r.Eventf(u, nil, "Normal", "Last", "A", "also before the end")
		cancel()
		synctest.Wait()

		if n := len(inner.got); n != 6+eventBurst {
			t.Errorf("%d events are recorded, want all %d: what waits at the end is recorded then", n, 6+eventBurst)
		}
	})
}

func TestEventsThatAreTooManyAreCounted(t *testing.T) {
	inner, r, reg := newRecorded(t)
	u := &corev1.ObjectReference{Kind: "Instance", Name: "db"}

	for range maxEvents + 3 {
		r.Eventf(u, nil, "Normal", "R", "A", "n")
	}

	// One more of the same process counts in the same metric.
	other, err := New(reg, inner, runtime.NewScheme())
	if err != nil {
		t.Fatal(err)
	}

	for range maxEvents + 2 {
		other.Eventf(u, nil, "Normal", "R", "A", "n")
	}

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	if len(families) != 1 || families[0].GetName() != "kausality_events_dropped_total" ||
		families[0].GetMetric()[0].GetCounter().GetValue() != 5 {
		t.Errorf("metrics are %v, want one of 5 events that were dropped", families)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := r.Start(ctx); err != nil {
		t.Fatal(err)
	}

	if len(inner.got) != maxEvents {
		t.Errorf("%d events are recorded, want %d", len(inner.got), maxEvents)
	}
}
