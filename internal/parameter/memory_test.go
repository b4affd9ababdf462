// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package parameter

import (
	"context"
	"testing"
	"time"
)

// TestWhatIsNoLongerGoodIsForgotten though nobody asks for it again: parameters may be large,
// and there may be some for each namespace.
func TestWhatIsNoLongerGoodIsForgotten(t *testing.T) {
	now := time.Unix(0, 0)
	m := newMemory[int, int](func() time.Time { return now })
	ask := func(key int) {
		if got, err := m.get(t.Context(), key, func(context.Context) (int, error) { return key, nil }); got != key || err != nil {
			t.Fatal(got, err)
		}
	}

	for i := range 10 {
		ask(i)
	}

	now = now.Add(goodFor)
	ask(10)

	if len(m.known) != 1 {
		t.Errorf("%d answers are remembered, want the last", len(m.known))
	}

	for i := range 2 * maxKnown {
		ask(i)
	}

	if len(m.known) > maxKnown {
		t.Errorf("%d answers are remembered at once", len(m.known))
	}
}
