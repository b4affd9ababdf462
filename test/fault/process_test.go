// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// away is for how long a process is dead, so that the others go on without it.
const away = 500 * time.Millisecond

// processes are those that may die. Clients wait longer and longer, up to a
// minute, for an API server that dies again and again; so it dies when all of
// them were started anew since the last time.
func processes() []string {
	return []string{
		"kube-apiserver", "etcd", "crossplane", "provider-kubernetes", "kausality-manager", "kube-controller-manager", "function-kausality",
	}
}

// kill kills a process, starts it again a moment later, perhaps with more flags,
// and says how long that took.
func kill(ctx context.Context, name string, flags ...string) (took string, err error) {
	p, start := running.Process(name), time.Now()

	if err := p.Kill(); err != nil {
		return "", err
	}

	dead := time.Now()

	if name != "kube-apiserver" && name != "etcd" { // Without these nobody goes on.
		time.Sleep(away)
	}

	if err := p.Restart(ctx, flags...); err != nil {
		return "", err
	}

	return fmt.Sprintf("%s was dead after %s, and back after %s", name,
		dead.Sub(start).Round(time.Millisecond), time.Since(dead).Round(time.Millisecond)), nil
}

// impatient starts the garbage collector anew, which may have waited for the API
// server so often that it would go on waiting for minutes.
func impatient(t *testing.T) {
	t.Helper()

	if err := running.Process("kube-controller-manager").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}
