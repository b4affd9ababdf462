// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/usage"
)

// median is the percentile in the middle.
const median = 0.50

// clientCounts are how many clients write at once.
func clientCounts() []int { return []int{1, 50} }

// BenchmarkUpdate measures an allowed update of one object by each approach. At 50 clients each has an
// object of its own, and ns/op is what is left of the time of one request when that many share the
// machine.
func BenchmarkUpdate(b *testing.B) {
	f := setup(b)

	for _, r := range roles() {
		for _, n := range clientCounts() {
			for _, a := range approaches() {
				b.Run(fmt.Sprintf("object=%s/clients=%d/by=%s", r, n, a), func(b *testing.B) { f.update(b, a, r, n) })
			}
		}
	}
}

func (f *fixture) update(b *testing.B, a approach, r role, clients int) {
	b.Helper()

	targets := f.targetsOf(b, a, r, clients)

	before, err := f.use(b.Context(), a)
	if err != nil {
		b.Fatal(err)
	}

	b.ResetTimer()

	took, err := run(b.Context(), targets, b.N)

	b.StopTimer()

	if err != nil {
		b.Fatal(err)
	}

	after, err := f.use(b.Context(), a)
	if err != nil {
		b.Fatal(err)
	}

	b.ReportMetric(percentile(took, median), "p50-ms")
	b.ReportMetric(percentile(took, 0.99), "p99-ms")

	if a == byKausality {
		b.ReportMetric((after.calls-before.calls)/float64(b.N), "api-calls/op")
	}

	if usage.Known && (a == byKausality || a == byAllowAll || a == byStamp) {
		b.ReportMetric(float64((after.cpu-before.cpu).Microseconds())/float64(b.N), "cpu-us/op")
	}
}

// use is what an approach has used by now, beside the API server.
type use struct {
	cpu   time.Duration
	calls float64
}

func (f *fixture) use(ctx context.Context, a approach) (use, error) {
	var (
		out use
		err error
	)

	switch a {
	case byKausality:
		if out.calls, err = f.calls(ctx); err == nil {
			out.cpu, err = usage.CPU(f.manager())
		}
	case byAllowAll, byStamp:
		out.cpu, err = usage.CPU(f.peer.PID())
	case byNone, byPolicy:
	}

	return out, err
}

// How many requests an approach makes before it is the next one's turn, more with more clients so that
// most are made while all of them write; and how many turns each has in one operation of
// BenchmarkUpdateRatio.
const (
	turn          = 50
	turnPerClient = 2
	turns         = 2
)

// BenchmarkUpdateRatio measures all approaches in turns, so that whatever else slows the machine down
// slows all of them, and says how many times as long a request takes with us as with the webhook that
// allows everything: the whole of it (p50-x, p99-x), and what is added to a request that nobody looks
// at (added-p50-x; of the 99th percentile such differences are mostly noise); and how many times as long as
// with the webhook that writes annotations as long as ours (stamp-p50-x). One operation is some 100 to 300
// requests of each, so percentiles want a BENCHTIME of 10s or more.
func BenchmarkUpdateRatio(b *testing.B) {
	f := setup(b)

	for _, r := range roles() {
		for _, n := range clientCounts() {
			b.Run(fmt.Sprintf("object=%s/clients=%d/by=%s", r, n, byKausality), func(b *testing.B) { f.ratio(b, r, n) })
		}
	}
}

func (f *fixture) ratio(b *testing.B, r role, clients int) {
	b.Helper()

	took := map[approach][]time.Duration{}

	for _, a := range approaches() {
		f.targetsOf(b, a, r, clients)
	}

	for b.Loop() {
		for i := range turns {
			for j := range approaches() {
				a := approaches()[(i+j)%len(approaches())] // Nobody is always behind the same one.

				more, err := run(b.Context(), f.targetsOf(b, a, r, clients), turn+turnPerClient*clients)
				if err != nil {
					b.Fatal(err)
				}

				took[a] = append(took[a], more...)
			}
		}
	}

	for name, part := range map[string]float64{"p50-x": median, "p99-x": 0.99} {
		ours, none, theirs := percentile(took[byKausality], part), percentile(took[byNone], part), percentile(took[byAllowAll], part)

		b.ReportMetric(ours/theirs, name)

		if part == median {
			b.ReportMetric((ours-none)/(theirs-none), "added-"+name)
			b.ReportMetric(ours/percentile(took[byStamp], part), "stamp-"+name)
		}
	}
}
