// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack whose processes these tests kill. It is no other test's.
var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{Governed: stack.Suite(), Service: true, ManagerFlags: []string{"--settle=2s", "--debug"}}, &running))
}
