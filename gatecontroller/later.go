// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// eventDelay is how long an event waits: by then a quick provider has applied
	// what a gate was opened for, and the gate is closed.
	eventDelay = 250 * time.Millisecond
	// eventsPerSecond and eventBurst are how many events are written at most.
	eventsPerSecond = 20
	eventBurst      = 30
	// mostEvents is how many may wait.
	mostEvents = 4096
)

// later records events after what they tell of: an API server that is busy with
// events takes longer to open and close gates. Where more happens for long than
// it may tell, events are left out, and counted.
type later struct {
	events.EventRecorder

	scheme  *runtime.Scheme
	delay   time.Duration
	limit   flowcontrol.RateLimiter
	queue   chan told
	dropped prometheus.Counter
}

// told is an event that waits.
type told struct {
	due                time.Time
	regarding, related runtime.Object
	typ, reason        string
	action, note       string
}

// newLater makes a recorder that has events recorded by another.
func newLater(reg prometheus.Registerer, inner events.EventRecorder, scheme *runtime.Scheme) (*later, error) {
	l := &later{
		EventRecorder: inner, scheme: scheme, delay: eventDelay,
		limit: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst), queue: make(chan told, mostEvents),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kausality_events_dropped_total", Help: "Events that were not recorded, because too many were waiting.",
		}),
	}

	if err := reg.Register(l.dropped); err != nil {
		return nil, fmt.Errorf("cannot register the metric of events: %w", err)
	}

	return l, nil
}

// NeedLeaderElection is false: it has nothing to record where nobody leads.
func (*later) NeedLeaderElection() bool { return false }

// Eventf implements events.EventRecorder.
func (l *later) Eventf(regarding, related runtime.Object, typ, reason, action, note string, args ...any) {
	e := told{
		due: time.Now().Add(l.delay), regarding: l.reference(regarding), related: l.reference(related),
		typ: typ, reason: reason, action: action, note: fmt.Sprintf(note, args...),
	}

	select {
	case l.queue <- e:
	default:
		l.dropped.Inc()
	}
}

// reference keeps of an object what an event needs.
func (l *later) reference(obj runtime.Object) runtime.Object {
	if obj == nil {
		return nil
	}

	ref, err := reference.GetReference(l.scheme, obj)
	if err != nil {
		return obj // The recorder says what is wrong with it.
	}

	return ref
}

// Start records what waits until the context ends, and then what is left.
func (l *later) Start(ctx context.Context) error {
	for {
		select {
		case e := <-l.queue:
			l.wait(ctx, e.due)
			l.record(e)
		case <-ctx.Done():
			l.rest()

			return nil
		}
	}
}

// wait waits until an event may be recorded, or the context ends.
func (l *later) wait(ctx context.Context, due time.Time) {
	select {
	case <-time.After(time.Until(due)):
	case <-ctx.Done():
		return
	}

	_ = l.limit.Wait(ctx) // Fails only where the context ends.
}

// rest records all that waits.
func (l *later) rest() {
	for {
		select {
		case e := <-l.queue:
			l.record(e)
		default:
			return
		}
	}
}

func (l *later) record(e told) {
	l.EventRecorder.Eventf(e.regarding, e.related, e.typ, e.reason, e.action, "%s", e.note)
}
