// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build reports which build of a program runs.
package build

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register makes a metric visible that names the version of the program that
// exports it.
func Register(reg prometheus.Registerer, version string) error {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kausality_build_info",
		Help: "1, with the version of the program.",
	}, []string{"version"})
	info.WithLabelValues(version).Set(1)

	if err := reg.Register(info); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}

	return nil
}
