// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package removal_test takes Kausality out of a whole stack, on which Crossplane,
// the garbage collector and a provider go on.
package removal_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is a stack of this package's own: what is removed is removed from all of
// a cluster.
var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{Governed: stack.Suite(), ManagerFlags: []string{"--settle=1s"}}, &running))
}
