// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package quiet_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// run is one run of a pipeline.
type run struct {
	XR string    `json:"xr"`
	At time.Time `json:"at"`
}

// count is how often the pipelines of some composite resources ran in a time.
type count struct {
	// runs are all of them. Those are early that came before Crossplane had to
	// look again: something woke the composite resource.
	runs, early int
}

// due are the runs that nothing woke.
func (c count) due() int { return c.runs - c.early }

// ratio is how often the pipelines ran for each time they had to.
func (c count) ratio() float64 { return float64(c.runs) / float64(max(c.due(), 1)) }

func (c count) String() string {
	return fmt.Sprintf("%d runs, of which something woke %d (%.3fx)", c.runs, c.early, c.ratio())
}

// runs reads when the pipelines of the composite resources ran that nobody
// touches, each in order.
func runs(t *testing.T) map[string][]time.Time {
	t.Helper()

	raw, err := os.ReadFile(running.Process(processCounter).Log())
	if err != nil {
		t.Fatal(err)
	}

	out := map[string][]time.Time{}

	for line := range strings.Lines(string(raw)) {
		var r run
		if json.Unmarshal([]byte(line), &r) == nil && strings.HasPrefix(r.XR, quiet+"-") {
			out[r.XR] = append(out[r.XR], r.At)
		}
	}

	for _, list := range out {
		slices.SortFunc(list, time.Time.Compare)
	}

	return out
}

// counted counts runs between two times.
func counted(runs map[string][]time.Time, ttl time.Duration, from, to time.Time) count {
	var out count

	for _, list := range runs {
		for i, at := range list {
			if at.Before(from) || !at.Before(to) {
				continue
			}

			out.runs++

			if i > 0 && early(at.Sub(list[i-1]), ttl) {
				out.early++
			}
		}
	}

	return out
}

// early reports whether a run came so soon after the one before that it was not the
// time that was up: Crossplane takes up to a tenth off, and begins to count when a
// run is over. However busy the machine is, no run that is due counts as early.
func early(after, ttl time.Duration) bool { return after < ttl*9/10 }

// calm checks that for some time nothing woke any of them.
func calm(runs map[string][]time.Time, ttl, since time.Duration) error {
	now := time.Now()

	if c := counted(runs, ttl, now.Add(-since), now); c.early > 0 {
		return fmt.Errorf("in the last %s there were %s: %w", since, c, world.ErrOther)
	}

	return nil
}
