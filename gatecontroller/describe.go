// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/internal/recorder"
)

// DescribeMetrics registers the metrics of the controllers without what feeds
// them, for those who want to know which there are. [Setup] registers the same.
func DescribeMetrics(reg prometheus.Registerer) error {
	for _, add := range []func() error{
		func() error { _, err := recorder.New(reg, nil, nil); return err },
		func() error { _, err := newExceptions(reg, nil); return err },
		func() error { _, err := unattendedGauge(reg); return err },
		func() error { _, err := newLedger(reg); return err },
		func() error { _, err := newEnds(reg, nil, nil, nil, "", gate.Options{}, nil); return err },
		func() error { return reg.Register(newWatches(nil, nil)) },
		func() error { return reg.Register(newUngated(nil)) },
		func() error { return reg.Register(newUnlisted(nil)) },
		func() error { return reg.Register(newRights(nil)) },
		func() error { return reg.Register(newExpressions().failed) },
		func() error { return reg.Register(&notReady{}) },
	} {
		if err := add(); err != nil {
			return err
		}
	}

	return nil
}
