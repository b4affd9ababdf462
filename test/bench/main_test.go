// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/peer"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack that all but the measurement of memory share.
var running *stack.Stack

func TestMain(m *testing.M) {
	peer.Main()

	if text := os.Getenv(envFloor); text != "" {
		os.Exit(serveFloor(text))
	}

	os.Exit(stack.Main(m, stack.Options{ManagerOnly: true, Governed: stack.Suite()}, &running))
}
