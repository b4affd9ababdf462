// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Metrics of what is held.
type Metrics struct {
	changes, oldest *prometheus.Desc
	writes          prometheus.Counter
	now             func() time.Time
	index           atomic.Pointer[index]
}

// NewMetrics makes Metrics by a clock, and registers them.
func NewMetrics(reg prometheus.Registerer, now func() time.Time) (*Metrics, error) {
	m := &Metrics{
		now: now,
		changes: prometheus.NewDesc("kausality_pending_changes",
			"PendingChanges of which something is held or under way, by the kind of the object that people edit.",
			[]string{object.LabelGroup, object.LabelKind}, nil),
		oldest: prometheus.NewDesc("kausality_pending_oldest_seconds",
			"For how long the change has been held that has been for longest, of all that are; 0 for none.", nil, nil),
		writes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kausality_pending_writes_total",
			Help: "PendingChanges that were made, deleted, or given another status.",
		}),
	}

	for _, c := range []prometheus.Collector{m, m.writes} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register metrics: %w", err)
		}
	}

	return m, nil
}

// Describe describes the gauges.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.changes

	out <- m.oldest
}

// Collect counts what is held.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	x := m.index.Load()
	if x == nil {
		return
	}

	x.mu.Lock()
	defer x.mu.Unlock()

	kinds, age := map[schema.GroupKind]int{}, time.Duration(0)

	for root, since := range x.open {
		kinds[root.GroupKind]++

		age = max(age, m.now().Sub(since))
	}

	for gk, n := range kinds {
		out <- prometheus.MustNewConstMetric(m.changes, prometheus.GaugeValue, float64(n), gk.Group, gk.Kind)
	}

	out <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, age.Seconds())
}
