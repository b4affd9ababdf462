// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package witness_test plays tenants of a PostgreSQL server, whose provider is
// made with upjet, and compares what the server says it has executed with who
// asked for what.
package witness_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack all tests of the package share.
var running *stack.Stack

// processProvider is the provider's process.
const processProvider = "provider-postgresql"

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{
		PostgreSQL:   true,
		Governed:     stack.Suite(),
		ManagerFlags: []string{"--settle=3s"},
	}, &running))
}
