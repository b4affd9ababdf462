// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestAnApprovalIsUsedOnceWhateverCrossplaneSees plays approvals while Crossplane sees everything late: that
// the XR carries an allowance when that was used, what the provider made when the next change is asked for.
func TestAnApprovalIsUsedOnceWhateverCrossplaneSees(t *testing.T) {
	world.Long(t)

	impatient(t)

	b, last, l := newBooth(t, "lagging"), approved{number: 1000, was: "large", size: "small"}, world.NewLag(t, running, "crossplane")

	for _, by := range []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second} {
		l.By(by)

		for at, s := range last.steps() {
			last = last.next()

			if !t.Run(fmt.Sprint(by, "/", s.name), func(t *testing.T) {
				// Crossplane, killed at any step, begins with what there is, and with what it sees late from then on.
				dies := func(ctx context.Context) (string, error) { return "nothing died", ctx.Err() }
				if by == time.Second {
					dies = func(ctx context.Context) (string, error) { return kill(ctx, "crossplane") }
				}

				if err := b.play(t, last, at, dies); err != nil {
					t.Fatalf("%v\n%s", err, b.dump(t.Context(), last))
				}
			}) {
				return // The next one builds on it.
			}

			if by != time.Second && at == stepListed+1 {
				break // It is the same where nothing dies.
			}
		}
	}

	if l.Seen.Load() == 0 {
		t.Fatalf("Crossplane saw everything at once: %v", world.ErrOther)
	}

	t.Logf("Crossplane saw %d pieces of watches late", l.Seen.Load())
}
