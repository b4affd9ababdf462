// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package examples_test plays what the READMEs of examples/ show on a stack of
// its own, has the API server refuse what is invalid, and tries every recipe of
// the cookbook.
package examples_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack all tests of the package share.
var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{PostgreSQL: true, Governed: stack.Suite(), ManagerFlags: []string{"--settle=2s"}}, &running))
}
