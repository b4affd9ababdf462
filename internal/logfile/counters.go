// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package logfile

import "github.com/prometheus/client_golang/prometheus"

// Counters of a log; each program has names of its own for them.
type Counters struct {
	// Bytes that were written.
	Bytes prometheus.Counter
	// Decisions that were written.
	Decisions prometheus.Counter
	// Dropped decisions, by the label reason.
	Dropped *prometheus.CounterVec
}

// DroppedHelp ends the help of the counter of dropped decisions.
const DroppedHelp = "by reason: Rate (there were more than --decision-log-rate), Queue (the file is written more slowly than " +
	"decisions are made), Size (it is larger than a file), Encode and Write (it could not be encoded or written)."

// Collectors are all of them.
func (c *Counters) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.Bytes, c.Decisions, c.Dropped}
}

// Reasons of dropped decisions.
const (
	reasonRate   = "Rate"
	reasonQueue  = "Queue"
	reasonSize   = "Size"
	reasonEncode = "Encode"
	reasonWrite  = "Write"
)
