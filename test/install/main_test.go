// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package install_test installs our packages by Crossplane's own package manager,
// from a registry, and runs what its Deployments say.
package install_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// running is the stack all tests of the package share.
var running *stack.Stack

// services reach what runs there.
var services *network

func TestMain(m *testing.M) {
	// The IPs of Services are those of this machine. So the API server reaches a webhook through the
	// Service that Crossplane made for it, where something listens at the Service's IP and port.
	ips := fmt.Sprintf("127.%d.%d.0/24", 1+rand.IntN(250), rand.IntN(250))

	var err error
	if services, err = newNetwork(); err != nil {
		panic(err)
	}

	os.Exit(stack.Main(m, stack.Options{
		Until: stack.Crossplane, Packages: true, APIServerFlags: []string{"--service-cluster-ip-range=" + ips},
		CrossplaneEnv: []string{"HTTPS_PROXY=http://" + services.proxy.Addr().String()},
	}, &running))
}
