// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/approval"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/status"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/internal/recorder"
)

// DescribeMetrics registers the metrics of the controllers without what feeds
// them, for those who want to know which there are. [Setup] registers the same.
func DescribeMetrics(reg prometheus.Registerer) error {
	for _, add := range []func() error{
		func() error { _, err := recorder.New(reg, nil, nil); return err },
		func() error { _, err := status.NewExceptions(reg, nil, nil, nil); return err },
		func() error { _, err := gates.NewLedger(reg, time.Now); return err },
		func() error { _, err := deletion.NewLeftovers(reg, nil, nil, "", gate.Options{}, nil); return err },
		func() error { _, err := pending.NewMetrics(reg, nil); return err },
		func() error { _, err := approval.NewMetrics(reg); return err },
		func() error { return reg.Register(watch.NewWatches(nil, nil)) },
		func() error { return reg.Register(gates.NewUngated(nil)) },
		func() error { return reg.Register((&gates.Gateless{}).Init()) },
		func() error { return reg.Register(discovery.NewUnlisted(nil)) },
		func() error { return reg.Register(status.NewRights(nil)) },
		func() error { return reg.Register(judging.NewExpressions().Failed) },
		func() error { return reg.Register(&status.NotReady{}) },
	} {
		if err := add(); err != nil {
			return err
		}
	}

	return nil
}
