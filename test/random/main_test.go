// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package random_test drives gates with a provider for tests, by hand and at
// random, and compares what reaches the external system with what was allowed.
package random_test

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

// Processes of the stack.
const (
	processProvider   = "provider"
	processManager    = "kausality-manager"
	processAPIServer  = "kube-apiserver"
	processEtcd       = "etcd"
	processCrossplane = "crossplane"
	processFunction   = "function-kausality"
)

func TestMain(m *testing.M) {
	outside = external.Start()

	// A gate's times are whole seconds, so that it may settle for one less. No change
	// takes as long, nor does a provider that is killed to be back and look, on a busy
	// machine either: one that numbers no conditions and has died for longer has lost a
	// change for good that was taken back meanwhile. With three seconds that happened.
	code := stack.Main(m, stack.Options{
		Governed:       stack.Suite(),
		ManagerFlags:   []string{"--settle=7s"},
		APIServerFlags: []string{"--audit-policy-file=" + auditPolicy(), "--audit-log-path=-"},
		Providers: map[string]stack.Provider{processProvider: {
			Package: "./test/provider", CRDs: "test/provider/crds", Flags: []string{"--external=" + outside.URL()},
		}},
	}, &running)

	outside.Stop()
	os.Exit(code)
}
