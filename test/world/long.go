// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import "testing"

// Long skips a test of make test-all where go test -short runs, as make test does. It is the first
// statement of a test, or of a subtest: a test that is skipped before t.Parallel holds up no other.
//
// A mechanism has at least one test without it. With it are tests of a race or a fault, and those of a
// special case of a mechanism that only a stack shows.
func Long(t *testing.T) {
	t.Helper()

	if testing.Short() {
		t.Skip("played by make test-all")
	}
}
