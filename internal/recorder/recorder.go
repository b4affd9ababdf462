// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recorder records events beside what they are about, and not too many.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kausality-io/kausality-crossplane/engine/message"
)

const (
	// eventDelay is how long an event waits: by then a quick provider has applied
	// what a gate was opened for, and the gate is closed.
	eventDelay = 250 * time.Millisecond
	// eventsPerSecond and eventBurst are how many events are written at most.
	eventsPerSecond = 20
	eventBurst      = 30
	// maxEvents is how many may wait.
	maxEvents = 4096
)

// Recorder records events after what they are about: an API server that is busy with
// events takes longer to open and close gates. Where more happens for long than
// it may send, events are left out, and counted; client-go's recorder drops them uncounted.
type Recorder struct {
	events.EventRecorder

	scheme  *runtime.Scheme
	delay   time.Duration
	limit   flowcontrol.RateLimiter
	queue   chan record
	dropped prometheus.Counter
}

// record is an event that waits.
type record struct {
	due                time.Time
	regarding, related runtime.Object
	typ, reason        string
	action, note       string
}

// New makes a recorder that has events recorded by another.
func New(reg prometheus.Registerer, inner events.EventRecorder, scheme *runtime.Scheme) (*Recorder, error) {
	r := &Recorder{
		EventRecorder: inner, scheme: scheme, delay: eventDelay,
		limit: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst), queue: make(chan record, maxEvents),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kausality_events_dropped_total", Help: "Events that were not recorded, because too many were waiting.",
		}),
	}

	// Several recorders of a process count together.
	if err := reg.Register(r.dropped); err != nil {
		known := prometheus.AlreadyRegisteredError{}
		if !errors.As(err, &known) {
			return nil, fmt.Errorf("cannot register the metric of events: %w", err)
		}

		dropped, ok := known.ExistingCollector.(prometheus.Counter)
		if !ok {
			return nil, fmt.Errorf("cannot register the metric of events: %w", err)
		}

		r.dropped = dropped
	}

	return r, nil
}

// NeedLeaderElection is false: it has nothing to record where nobody leads.
func (*Recorder) NeedLeaderElection() bool { return false }

// Eventf implements events.EventRecorder.
func (r *Recorder) Eventf(regarding, related runtime.Object, typ, reason, action, note string, args ...any) {
	e := record{
		due: time.Now().Add(r.delay), regarding: r.reference(regarding), related: r.reference(related),
		typ: typ, reason: reason, action: action, note: message.Cut(fmt.Sprintf(note, args...), message.Most),
	}

	select {
	case r.queue <- e:
	default:
		r.dropped.Inc()
	}
}

// reference leaves of an object what an event needs.
func (r *Recorder) reference(obj runtime.Object) runtime.Object {
	if obj == nil {
		return nil
	}

	ref, err := reference.GetReference(r.scheme, obj)
	if err != nil {
		return obj // The recorder says what is wrong with it.
	}

	return ref
}

// Start records what waits until the context ends, and then what is left.
func (r *Recorder) Start(ctx context.Context) error {
	for {
		select {
		case e := <-r.queue:
			r.wait(ctx, e.due)
			r.record(e)
		case <-ctx.Done():
			r.rest()

			return nil
		}
	}
}

// wait waits until an event may be recorded, or the context ends.
func (r *Recorder) wait(ctx context.Context, due time.Time) {
	select {
	case <-time.After(time.Until(due)):
	case <-ctx.Done():
		return
	}

	_ = r.limit.Wait(ctx) // Fails only where the context ends.
}

// rest records all that waits.
func (r *Recorder) rest() {
	for {
		select {
		case e := <-r.queue:
			r.record(e)
		default:
			return
		}
	}
}

func (r *Recorder) record(e record) {
	r.EventRecorder.Eventf(e.regarding, e.related, e.typ, e.reason, e.action, "%s", e.note)
}
