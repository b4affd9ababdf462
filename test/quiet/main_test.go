// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package quiet_test counts how often Crossplane runs the pipelines of composite
// resources that nobody touches, while there is much to do for others.
package quiet_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// Processes of the stack.
const (
	processCounter  = "function-counter"
	processFunction = "function-kausality"
	processManager  = "kausality-manager"
)

// running is the stack all tests of the package share.
var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{
		// Two managers, of which one leads, as the chart installs them.
		Service:      true,
		ManagerFlags: []string{"--settle=2s", "--leader-elect"},
		Governed:     stack.Suite(),
		// The circuit breaker that Crossplane has by default.
		CrossplaneFlags: []string{"--circuit-breaker-burst=100", "--circuit-breaker-refill-rate=1"},
		Functions:       map[string]string{processCounter: "./test/quiet/counter"},
	}, &running))
}
