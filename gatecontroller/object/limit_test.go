// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSomeWritesAreKeptForThoseThatComeFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, firstTakeMore)
}

func firstTakeMore(t *testing.T) {
	l := newLimit(4)

	takes := func(first, want bool) func() {
		t.Helper()

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // By the clock of the test.
		defer cancel()

		end, err := l.take(ctx, first)
		if got := err == nil; got != want || err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("take(first=%t) = %v, want a write: %t", first, err, want)
		}

		return end
	}

	ends := make([]func(), 0, 3)
	for range 3 {
		ends = append(ends, takes(false, true))
	}

	takes(false, false)

	last := takes(true, true)

	takes(true, false)
	ends[0]()
	takes(true, true)
	takes(false, false)
	last()
	takes(false, true)
}
