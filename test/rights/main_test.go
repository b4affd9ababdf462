// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package rights_test runs a manager that has its standing rights and no others,
// and gives it those that are missing as its messages say.
package rights_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack all tests of the package share.
var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{Governed: []string{}, ManagerFlags: []string{"--settle=2s"}}, &running))
}
