// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package cookbook_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack that the plays share. Nothing but the API server and the manager has a part in them.
var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{
		ManagerOnly:  true,
		Governed:     append(stack.Suite(), "*.rds.aws.upbound.io", "*.platform.example.org"),
		ManagerFlags: []string{"--settle=1s"},
	}, &running))
}
