// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fleet_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

const (
	// starving is for how long the API server is stopped for half of each second.
	starving = time.Minute
	half     = 500 * time.Millisecond
	// lateness is how old what watches show is.
	lateness = 3 * time.Second
)

// TestGatesAreRecordedWhileTheAPIServerStarves makes a fleet while the API server is stopped for half of each second.
func TestGatesAreRecordedWhileTheAPIServerStarves(t *testing.T) {
	world.Long(t)

	f := fleet{kind: "Starved", n: xrs, gated: true}.set(t)

	ctx, end := context.WithTimeout(t.Context(), starving)
	defer end()

	done := make(chan struct{})

	go func() {
		defer close(done)

		starve(ctx, running.Process("kube-apiserver").PID())
	}()

	f.fills(t)
	<-done
}

// TestGatesAreRecordedWhileWatchesAreLate makes a fleet while nobody sees what there is before some seconds.
func TestGatesAreRecordedWhileWatchesAreLate(t *testing.T) {
	world.Long(t)

	l := world.NewLag(t, running, "crossplane", "provider-kubernetes", "kausality-manager")
	f := fleet{kind: "Late", n: xrs, gated: true}.set(t)
	l.By(lateness)

	f.fills(t)

	if l.Seen.Load() == 0 {
		t.Error("nothing was late")
	}
}

// fills makes a fleet, and checks that each managed resource is recorded in time.
func (f fleet) fills(t *testing.T) {
	t.Helper()

	seen := f.watch(t)
	f.play(t, "one", true)
	seen.check(t, f.n)
}

// starve stops a process for half of each second.
func starve(ctx context.Context, pid int) {
	for ctx.Err() == nil {
		_ = syscall.Kill(pid, syscall.SIGSTOP)

		time.Sleep(half)

		_ = syscall.Kill(pid, syscall.SIGCONT)

		time.Sleep(half)
	}
}
