// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// watchedDesc describes the metric about the kinds that are watched.
func watchedDesc() *prometheus.Desc {
	return prometheus.NewDesc("kausality_watched_kinds", "Kinds that the manager watches, each 1.",
		[]string{object.LabelGroup, "version", object.LabelKind}, nil)
}

// Describe implements prometheus.Collector.
func (*Watches) Describe(out chan<- *prometheus.Desc) { out <- watchedDesc() }

// Collect implements prometheus.Collector.
func (w *Watches) Collect(out chan<- prometheus.Metric) {
	desc := watchedDesc()

	for _, gvk := range w.Kinds() {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, gvk.Group, gvk.Version, gvk.Kind)
	}
}
