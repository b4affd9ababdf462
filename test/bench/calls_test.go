// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import "testing"

const (
	// allowedUpdates are how many are made.
	allowedUpdates = 200
	// otherCalls are how many requests the manager may make meanwhile for reasons of its own: once in a
	// minute it checks its certificate and the kinds there are, and now and then a watch ends.
	otherCalls = 5
)

func TestAnAllowedUpdateCostsNoCallOfTheAPIServer(t *testing.T) {
	f := setup(t)

	for _, r := range roles() {
		t.Run(string(r), func(t *testing.T) {
			targets := f.targetsOf(t, byKausality, r, 5)

			// 1. What is asked for once is asked for now: informers start where they are needed first.
			if _, err := run(t.Context(), targets, len(targets)); err != nil {
				t.Fatal(err)
			}

			before, err := f.calls(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			if before == 0 {
				t.Fatal("the manager does not count its requests")
			}

			// 2. Change them.
			if _, err := run(t.Context(), targets, allowedUpdates); err != nil {
				t.Fatal(err)
			}

			after, err := f.calls(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			if made := after - before; made >= otherCalls {
				t.Errorf("the manager made %v requests during %d allowed updates, want fewer than %d", made, allowedUpdates, otherCalls)
			}
		})
	}
}
