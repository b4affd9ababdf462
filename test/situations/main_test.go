// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package situations_test plays what people meet, one situation after the other, and
// shows that it reads as docs/situations.md says:
//
//	go test -tags stack ./test/situations -update
//
// writes that page anew out of what was read: read what changed.
package situations_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{
		Governed:     stack.Suite(),
		ManagerFlags: []string{"--settle=2s"},
	}, &running))
}
