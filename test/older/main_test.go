// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package older_test plays on the oldest Crossplane that Kausality is for, with a
// provider on a crossplane-runtime of before 1.20.
package older_test

import (
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/provider/external"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack, and outside the external system of its provider, that
// all tests of the package share.
var (
	running *stack.Stack
	outside *external.System
)

func TestMain(m *testing.M) {
	outside = external.Start()

	code := stack.Main(m, stack.Options{
		CrossplaneBefore2: true,
		Governed:          stack.Suite(),
		ManagerFlags:      []string{"--settle=2s", "--gate-without-late-initialize=Disk.old.example.org"},
		Providers: map[string]stack.Provider{"oldprovider": {
			Module: "test/oldprovider", Package: ".", CRDs: "test/oldprovider/crds", Flags: []string{"--external=" + outside.URL()},
		}},
	}, &running)

	outside.Stop()
	os.Exit(code)
}
