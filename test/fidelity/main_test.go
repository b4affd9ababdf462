// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package fidelity_test asks the function about objects that a real API server
// stored in its own way: with defaults, without empty values, with list keys
// filled in, rewritten by a webhook. What was asked for before is no change,
// whatever became of it; what is asked for anew is one, and so is what somebody
// else edited.
package fidelity_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the API server all tests of the package share.
var running *stack.Stack

func TestMain(m *testing.M) {
	code := stack.Main(m, stack.Options{Until: stack.APIServer}, &running)

	fmt.Fprintln(os.Stderr, "fidelity: to play one object again: KAUSALITY_SEED=n KAUSALITY_OBJECTS=1")
	os.Exit(code)
}
