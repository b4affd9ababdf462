// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbage is how much of it, in bytes, may always lie about, and maxGarbage and
	// leastGarbage how much in percent of what is in use: of a small heap, more than
	// by default, and of a large one, which is mostly cache, less. Until 10,000 managed
	// resources were reconciled the process took a quarter more CPU time with 50 than
	// with 100 (BenchmarkGates).
	garbage                  = 24 << 20
	maxGarbage, leastGarbage = 200, 40
	// unknownGarbage is the default, until something was collected.
	unknownGarbage = 100
	// tuneEvery is how often the size of the heap is checked.
	tuneEvery = time.Second
)

// Metrics of package runtime/metrics.
const (
	heapLive    = "/gc/heap/live:bytes"
	heapGoal    = "/gc/heap/goal:bytes"
	heapObjects = "/memory/classes/heap/objects:bytes"
)

// tuneMemory limits the memory that garbage takes while many objects are
// cached, until the context ends. The environment variable GOGC has the last
// word.
func tuneMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}

	samples := []metrics.Sample{{Name: heapLive}, {Name: heapGoal}, {Name: heapObjects}}
	percent := unknownGarbage
	last := heap{}

	ticker := time.NewTicker(tuneEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}

		metrics.Read(samples)

		now := heap{live: samples[0].Value.Uint64(), goal: samples[1].Value.Uint64(), objects: samples[2].Value.Uint64()}

		if want := gcPercent(now.live); want != percent {
			percent = want

			debug.SetGCPercent(percent)
		}

		if now.collects(last) {
			runtime.GC()
		}

		last = now
	}
}

// heap is the state of the heap, in bytes.
type heap struct {
	// live is what was in use when garbage was last collected, goal how much there
	// may be until it is collected again, and objects how much there is.
	live, goal, objects uint64
}

// collects reports whether to collect garbage before there is so much that it has
// to be. That would be while something is allocated: in the middle of moving a
// gate, which then takes twice as long. Now is a time like any other, and where
// little was allocated since a moment ago, a calm one.
func (h heap) collects(before heap) bool {
	if h.goal <= h.live || h.objects <= h.live {
		return false
	}

	room, used := h.goal-h.live, h.objects-h.live
	grown := max(h.objects, before.objects) - before.objects

	return used > room/2 && grown < room/8
}

// gcPercent is how much garbage there may be beside what is in use, in tens so
// that it does not change all the time.
func gcPercent(live uint64) int {
	if live == 0 {
		return unknownGarbage
	}

	return int(max(leastGarbage, min(maxGarbage, garbage*10/live*10)))
}
