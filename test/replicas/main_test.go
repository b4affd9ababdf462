// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package replicas_test runs several replicas, of which one leads. There is nothing
// else beside the API server; the tests are the provider.
package replicas_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack all tests of the package share.
var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{
		ManagerOnly: true, Service: true, Governed: stack.Suite(),
		ManagerFlags: []string{
			"--settle=1s", "--leader-elect", "--leader-lease-duration=6s", "--leader-renew-deadline=5s", "--leader-retry-period=500ms",
		},
	}, &running))
}
