// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbage is how much of it, in bytes, may always lie about, and mostGarbage and
	// leastGarbage how much in percent of what is in use: a small heap is
	// collected as seldom as by default, and a large one, which is mostly cache,
	// more often. Until 10,000 managed resources were looked at the process took
	// a quarter more CPU time with 50 than with 100 (BenchmarkGates).
	garbage                   = 24 << 20
	mostGarbage, leastGarbage = 100, 40
	// tuneEvery is how often the size of the heap is looked at.
	tuneEvery = time.Second
)

// tuneMemory keeps down the memory that garbage takes while many objects are
// cached, until the context ends. The environment variable GOGC has the last
// word.
func tuneMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}

	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := mostGarbage

	ticker := time.NewTicker(tuneEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}

		metrics.Read(live)

		if want := gcPercent(live[0].Value.Uint64()); want != percent {
			percent = want

			debug.SetGCPercent(percent)
		}
	}
}

// gcPercent is how much garbage there may be beside what is in use, in tens so
// that it does not change all the time.
func gcPercent(live uint64) int {
	if live == 0 {
		return mostGarbage // Nothing was collected yet.
	}

	return int(max(leastGarbage, min(mostGarbage, garbage*10/live*10)))
}
