// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// endsSoon is how long before its end an exception is warned of.
const endsSoon = 24 * time.Hour

// Exceptions tell how long the exceptions of Enforcements last, before they end
// by themselves.
type Exceptions struct {
	until  *prometheus.GaugeVec
	ending *prometheus.GaugeVec
	events events.EventRecorder

	// warned are the exceptions whose end somebody was told of, with that end.
	warned map[string]time.Time
}

// NewExceptions makes Exceptions, and registers their metrics.
func NewExceptions(reg prometheus.Registerer, recorder events.EventRecorder) (*Exceptions, error) {
	labels := []string{"enforcement", "exception"}
	x := &Exceptions{
		events: recorder, warned: map[string]time.Time{},
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

// Values of the metric that warns.
const (
	lasting = iota
	ending
	ended
)

// Set tells of the exceptions there are now.
func (x *Exceptions) Set(list []v1alpha1.Enforcement, now time.Time) {
	x.until.Reset()
	x.ending.Reset()

	warned := map[string]time.Time{}

	for i := range list {
		for _, e := range list[i].Spec.Exceptions {
			state := lasting

			switch {
			case !now.Before(e.Until.Time):
				state = ended
			case e.Until.Sub(now) < endsSoon:
				state = ending
			}

			x.until.WithLabelValues(list[i].GetName(), e.Name).Set(float64(e.Until.Unix()))
			x.ending.WithLabelValues(list[i].GetName(), e.Name).Set(float64(state))

			key := list[i].GetName() + "/" + e.Name
			if state == ending && !x.warned[key].Equal(e.Until.Time) {
				x.events.Eventf(&list[i], nil, corev1.EventTypeWarning, "KausalityExceptionEnds", "Except",
					"the exception %q (%s) ends at %s", e.Name, e.Reason, e.Until.UTC().Format(time.RFC3339))
			}

			if state == ending {
				warned[key] = e.Until.Time
			}
		}
	}

	x.warned = warned
}
