// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package fleet_test makes and edits many composite resources at once, beside the same without Kausality, and
// counts in the audit log of the API server what that takes.
package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/peer"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack all tests of the package share, and audited the file that its API server logs to.
var (
	running *stack.Stack
	audited string
)

func TestMain(m *testing.M) {
	peer.Main()

	os.Exit(run(m))
}

// run has everything run with its defaults, but for where the API server logs to: those of the stack are others.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kausality-fleet-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	defer func() { _ = os.RemoveAll(dir) }()

	policy, err := filepath.Abs(filepath.Join("testdata", "audit.yaml"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	audited = filepath.Join(dir, "audit.log")

	return stack.Main(m, stack.Options{
		APIServerFlags:  []string{"--audit-policy-file=" + policy, "--audit-log-path=" + audited, "--audit-log-maxsize=100000"},
		CrossplaneFlags: []string{"--poll-interval=1m", "--circuit-breaker-burst=100", "--circuit-breaker-refill-rate=1"},
		ProviderFlags:   []string{"--poll=10m"},
	}, &running)
}
