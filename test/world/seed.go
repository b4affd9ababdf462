// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"os"
	"strconv"
	"testing"
)

// EnvSeed names the environment variable that has a random test play again what it
// has played with a seed.
const EnvSeed = "KAUSALITY_SEED"

// Number reads a number from an environment variable; it is fallback where that is
// not set.
func Number(t *testing.T, variable string, fallback uint64) uint64 {
	t.Helper()

	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}

	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("cannot read %s: %v", variable, err)
	}

	return n
}

// Sample is how many plays of a random test there are by default: all, or few where go test -short runs, as
// make test does.
func Sample(few, all uint64) uint64 {
	if testing.Short() {
		return few
	}

	return all
}

// Must ends the test where there is an error.
func Must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}
