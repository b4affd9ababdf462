// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack all tests of the package share.
var running *stack.Stack

// racing is how many rounds the race has, where this process is to run the one test that needs the machine
// for itself, as make test-race does; 0 where it is not.
func racing() int {
	n, err := strconv.Atoi(os.Getenv("KAUSALITY_RACE"))
	if err != nil {
		return 0
	}

	return max(n, rounds)
}

// options are those of the stack; for the race with the circuit breaker that
// Crossplane has by default.
func options() stack.Options {
	o := stack.Options{
		Governed:     stack.Suite(),
		ManagerFlags: []string{"--settle=2s", "--debug", "--report-interval=2s", "--gate-without-late-initialize=*.old.example.org"},
	}

	if racing() == 0 {
		o.ProviderNop, o.RBACManager = true, true
		o.Functions = map[string]string{functionTemplates: "./test/e2e/templates", functionTemplates + "-next": "./test/e2e/templates"}
		// Certificates and their CA are rotated all the time.
		o.ManagerFlags = append(o.ManagerFlags, "--webhook-ca-life=2m", "--webhook-cert-life=1m", "--webhook-ca-publish=10s", "--webhook-reload=2s")
		o.APIServerFlags = []string{"--audit-policy-file=" + auditPolicy(), "--audit-log-path=-"}
	}

	if racing() > 0 {
		o.CrossplaneFlags = []string{
			fmt.Sprint("--circuit-breaker-burst=", breakerBurst), fmt.Sprint("--circuit-breaker-refill-rate=", breakerRefill),
		}
		o.Functions = map[string]string{"function-slow": "./test/e2e/slow"}
	}

	return o
}

// functionTemplates is the name of a function; with -next, of its next release.
const functionTemplates = "function-templates"

// auditPolicy is the file that says what the API server logs.
func auditPolicy() string {
	dir, err := os.Getwd()
	if err != nil {
		return "" // The API server says so.
	}

	return filepath.Join(dir, "testdata", "audit-policy.yaml")
}

func TestMain(m *testing.M) {
	logged, err := newLogged(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	os.Exit(logged.main())
}
