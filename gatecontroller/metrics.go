// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"github.com/prometheus/client_golang/prometheus"
)

// watchedDesc describes the metric about the kinds that are watched.
func watchedDesc() *prometheus.Desc {
	return prometheus.NewDesc("kausality_watched_kinds", "Kinds that the manager watches, each 1.",
		[]string{labelGroup, "version", labelKind}, nil)
}

// Describe implements prometheus.Collector.
func (*watches) Describe(out chan<- *prometheus.Desc) { out <- watchedDesc() }

// Collect implements prometheus.Collector.
func (w *watches) Collect(out chan<- prometheus.Metric) {
	desc := watchedDesc()

	for _, gvk := range w.kinds() {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, gvk.Group, gvk.Version, gvk.Kind)
	}
}
