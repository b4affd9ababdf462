// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package chart_test renders the Helm chart, has it judged by the schemas of an
// API server, and installs, upgrades and removes what it renders. There is
// nothing else beside the API server; the tests are the provider.
package chart_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the API server all tests of the package share.
var running *stack.Stack

func TestMain(m *testing.M) {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}

	os.Exit(stack.Main(m, stack.Options{
		Until: stack.APIServer, Service: true,
		APIServerFlags: []string{"--audit-policy-file=" + filepath.Join(dir, "testdata", "audit-policy.yaml"), "--audit-log-path=-"},
	}, &running))
}
