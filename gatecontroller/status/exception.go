// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// endsSoon is how long before its end an exception is warned of.
const endsSoon = 24 * time.Hour

// Exceptions reports how long the exceptions of Enforcements last, before they end
// by themselves. They reconcile one Enforcement at a time.
type Exceptions struct {
	reader client.Reader
	events events.EventRecorder
	now    func() time.Time

	until  *prometheus.GaugeVec
	ending *prometheus.GaugeVec

	// warned are the exceptions whose end somebody was reported, with that end, by
	// Enforcement.
	warned map[string]map[string]time.Time
}

// labelEnforcement is the label of metrics that names an Enforcement.
const labelEnforcement = "enforcement"

// NewExceptions makes Exceptions, and registers their metrics.
func NewExceptions(
	reg prometheus.Registerer, cached client.Reader, recorder events.EventRecorder, now func() time.Time,
) (*Exceptions, error) {
	labels := []string{labelEnforcement, "exception"}
	x := &Exceptions{
		reader: cached, events: recorder, now: now, warned: map[string]map[string]time.Time{},
		until: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kausality_enforcement_exception_until_timestamp_seconds",
			Help: "When an exception of an Enforcement ends, in seconds since 1970.",
		}, labels),
		ending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kausality_enforcement_exception_ending",
			Help: "1 for an exception of an Enforcement that ends within a day, 2 for one that has ended, 0 for others.",
		}, labels),
	}

	for _, c := range []prometheus.Collector{x.until, x.ending} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register metrics: %w", err)
		}
	}

	return x, nil
}

// Controller makes the controller of exceptions.
func (x *Exceptions) Controller(c cache.Cache, log logr.Logger) (controller.Controller, error) {
	return object.NewController("exceptions", x, controller.Options{Logger: log}, source.Kind(c, client.Object(&v1alpha1.Enforcement{}),
		&handler.EnqueueRequestForObject{}, object.SpecChanged()))
}

// Values of the metric that warns.
const (
	lasting = iota
	ending
	ended
)

// stateOf is how far an exception is at a moment, and how long until it is further;
// zero where it has ended.
func stateOf(e *v1alpha1.Exception, now time.Time) (state int, next time.Duration) {
	switch left := e.Until.Sub(now); {
	case left <= 0:
		return ended, 0
	case left < endsSoon:
		return ending, left
	default:
		return lasting, left - endsSoon + time.Second
	}
}

// Reconcile reports the exceptions of one Enforcement, and again when one of them is
// about to end, or has ended.
func (x *Exceptions) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	e := &v1alpha1.Enforcement{}
	if err := client.IgnoreNotFound(x.reader.Get(ctx, req.NamespacedName, e)); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot get Enforcement %q: %w", req.Name, err)
	}

	x.until.DeletePartialMatch(prometheus.Labels{labelEnforcement: req.Name})
	x.ending.DeletePartialMatch(prometheus.Labels{labelEnforcement: req.Name})

	warned, now := map[string]time.Time{}, x.now()

	var result reconcile.Result

	for i := range e.Spec.Exceptions {
		one := &e.Spec.Exceptions[i]
		state, next := stateOf(one, now)

		x.until.WithLabelValues(req.Name, one.Name).Set(float64(one.Until.Unix()))
		x.ending.WithLabelValues(req.Name, one.Name).Set(float64(state))

		if next > 0 && (result.RequeueAfter == 0 || next < result.RequeueAfter) {
			result.RequeueAfter = next
		}

		if state != ending {
			continue
		}

		warned[one.Name] = one.Until.Time
		if !x.warned[req.Name][one.Name].Equal(one.Until.Time) {
			x.events.Eventf(e, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonExceptionEnds), "Except",
				"the exception %q (%s) ends at %s", one.Name, one.Reason, one.Until.UTC().Format(time.RFC3339))
		}
	}

	x.warned[req.Name] = warned
	if len(warned) == 0 {
		delete(x.warned, req.Name)
	}

	return result, nil
}
