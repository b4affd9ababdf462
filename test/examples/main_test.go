// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package examples_test plays what pages show on one stack: the READMEs of examples/, docs/situations.md, and
// docs/approvals.md. It has the API server refuse what is invalid.
package examples_test

import (
	"flag"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// running is the stack all tests of the package share.
var running *stack.Stack

func TestMain(m *testing.M) {
	flag.Parse()

	os.Exit(stack.Main(m, stack.Options{
		PostgreSQL: !testing.Short(), Governed: stack.Suite(), DecisionLog: true,
		ManagerFlags:   []string{"--settle=2s", "--approvers=" + team + ":" + approvalsAccount},
		APIServerFlags: []string{"--audit-policy-file=" + auditPolicy(), "--audit-log-path=-"},
	}, &running))
}

// somebody is a client of who may do everything, as far as roles go.
func somebody(t *testing.T) client.Client {
	t.Helper()

	return world.Impersonate(t, running, "somebody", "system:masters")
}
