// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fleet_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kausality-io/kausality-crossplane/test/usage"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// envSeconds names the environment variable that says how long a fleet is looked at, in seconds.
const envSeconds = "KAUSALITY_SECONDS"

const (
	// steady is how long it is by default, of so few composite resources.
	steady    = 20
	steadyXRs = 20
	// maxEdits are made in a second, fewer where each composite resource were edited more often than each edited.
	maxEdits = 5
	edited   = 20 * time.Second
)

// TestWhatAFleetCosts makes composite resources, without Kausality and with it, and logs what CPU, memory and writes they take while
// nobody edits them, and while five of them are edited each second. Pipelines run each minute.
//
// KAUSALITY_XRS=n has n of them, KAUSALITY_SECONDS=n looks at them for so long; make soak has 1,000 for five minutes.
func TestWhatAFleetCosts(t *testing.T) {
	world.Long(t)

	n := int(world.Number(t, envXRs, steadyXRs))
	plain := fleet{kind: "Steady", n: n}.costs(t)
	gated := fleet{kind: "Governed", n: n, gated: true}.costs(t)

	t.Logf("%d XRs, memory in MiB more than before, CPU in ms and writes per second, without and with Kausality\n%s", n, compared(plain, gated))

	if gated.rest.touched > 0 {
		t.Errorf("the manager wrote %d times to the fleet while nobody edited anything", gated.rest.touched)
	}
}

// costs of a fleet.
type costs struct {
	// memory of processes by their names, in MiB, more than before the fleet was made.
	memory      map[string]float64
	rest, edits span
}

// span is what was taken in a second.
type span struct {
	// cpu in ms, of processes by their names.
	cpu map[string]float64
	// writes that did not fail, of users by their names. The manager applies its guards each minute.
	writes map[string]float64
	// touched is how often the manager wrote to the fleet, in all.
	touched int
}

// costs makes a fleet, and counts.
func (f fleet) costs(t *testing.T) costs {
	t.Helper()

	span := time.Duration(world.Number(t, envSeconds, steady)) * time.Second
	out, l, before := costs{memory: map[string]float64{}}, openLog(t), f.memory(t)
	f = f.set(t)
	opened := opens(t)

	f.write(t, "one")
	world.Eventually(t, "the fleet", func(ctx context.Context) error { return f.shows(ctx, "one", true) })

	r := &rest{}
	world.Eventually(t, "rest", func(ctx context.Context) error { return f.over(ctx, r) })

	out.rest = f.counts(t, l, func() { time.Sleep(span) })
	out.edits = f.counts(t, l, func() { f.edit(t, span) })

	for name, now := range f.memory(t) {
		out.memory[name] = now - before[name]
	}

	if opening := opens(t) - opened; opening > 0 {
		t.Errorf("%s: circuit breakers opened %.0f times", f.kind, opening)
	}

	f.pause(t)

	return out
}

// counts what is taken while something is done.
func (f fleet) counts(t *testing.T, l *log, do func()) span {
	t.Helper()

	l.next(t)

	before, start := f.cpu(t), time.Now()

	do()

	took := time.Since(start).Seconds()
	out := span{cpu: map[string]float64{}, writes: map[string]float64{}}

	for name, now := range f.cpu(t) {
		out.cpu[name] = float64((now - before[name]).Milliseconds()) / took
	}

	for _, e := range l.next(t) {
		if e.writes() && !e.failed() && e.stores() {
			out.writes[e.who()] += 1 / took

			if e.who() == "kausality-manager" && f.has(&e) {
				out.touched++
			}
		}
	}

	return out
}

// edit has composite resources of the fleet be of another size, for so long and until the last is so outside.
func (f fleet) edit(t *testing.T, during time.Duration) {
	t.Helper()

	var group errgroup.Group
	group.SetLimit(writers)

	sizes := slices.Repeat([]string{"one"}, f.n)

	every := max(time.Second/maxEdits, edited/time.Duration(f.n))

	tick := time.NewTicker(every)
	defer tick.Stop()

	for k := range int(during / every) {
		<-tick.C

		i, size := k%f.n, fmt.Sprintf("edit-%d", k/f.n)
		sizes[i] = size

		group.Go(func() error { return f.apply(t.Context(), i, size) })
	}

	world.Must(t, group.Wait())
	world.Eventually(t, "the last edit outside", func(ctx context.Context) error { return f.outside(ctx, sizes) })
}

// memory is what processes have, by their names.
func (f fleet) memory(t *testing.T) map[string]float64 {
	t.Helper()

	out := map[string]float64{}

	for name, pid := range f.processes() {
		now, err := usage.Memory(pid, usage.Resident)
		world.Must(t, err)

		out[name] = now
	}

	return out
}

// compared is a table of two fleets: memory, CPU and writes, by the names of processes and users.
func compared(plain, gated costs) string {
	columns := []struct {
		title string
		of    func(c costs) map[string]float64
	}{
		{"memory", func(c costs) map[string]float64 { return c.memory }},
		{"CPU at rest", func(c costs) map[string]float64 { return c.rest.cpu }},
		{"CPU edited", func(c costs) map[string]float64 { return c.edits.cpu }},
		{"writes at rest", func(c costs) map[string]float64 { return c.rest.writes }},
		{"writes edited", func(c costs) map[string]float64 { return c.edits.writes }},
	}

	names := map[string]bool{}

	for _, c := range columns {
		for name := range c.of(plain) {
			names[name] = true
		}

		for name := range c.of(gated) {
			names[name] = true
		}
	}

	var out strings.Builder

	fmt.Fprintf(&out, "%-36s", "")

	for _, c := range columns {
		fmt.Fprintf(&out, " %17s", c.title)
	}

	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&out, "\n%-36s", name)

		for _, c := range columns {
			fmt.Fprintf(&out, " %8.2f %8.2f", c.of(plain)[name], c.of(gated)[name])
		}
	}

	return out.String()
}
