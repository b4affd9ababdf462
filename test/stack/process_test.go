// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shell returns a process that runs a script.
func shell(t *testing.T, script string) *Process {
	t.Helper()
	l := newLauncher()
	p := &Process{
		command:  command{name: "sh", path: "/bin/sh", args: []string{"-c", script}},
		launcher: l,
		log:      filepath.Join(t.TempDir(), "sh.log"),
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		l.close()
	})
	return p
}

func TestAProcessThatEndsBeforeItIsReadyFailsWithItsLog(t *testing.T) {
	p := shell(t, "echo no such flag; exit 3")
	p.probe = Probe{Address: "127.0.0.1:1"}
	if err := p.start(nil); err != nil {
		t.Fatal(err)
	}
	err := p.ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("got error %v, want one with the exit status and the log", err)
	}
}

func TestAProcessThatHangsIsWaitedForAsLongAsTheContextLasts(t *testing.T) {
	p := shell(t, "exec sleep 60")
	p.probe = Probe{Address: "127.0.0.1:1"}
	if err := p.start(nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := p.ready(ctx); err == nil || !strings.Contains(err.Error(), `"sh"`) {
		t.Errorf("got error %v, want one that names the process", err)
	}
}

func TestAProcessIsKilledWithItsChildrenAndStartsAgain(t *testing.T) {
	p := shell(t, "sleep 60 & echo $!; wait")
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := p.PID()
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.PID() == 0 || p.PID() == first {
		t.Errorf("got PID %d after %d, want another one", p.PID(), first)
	}
	if identity(first) != "" {
		t.Error("the first run is still there")
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if p.PID() != 0 {
		t.Errorf("it still runs as %d", p.PID())
	}
	if err := p.died(); err != nil {
		t.Errorf("it is reported as dead although it was stopped: %v", err)
	}
}

func TestADeathNobodyWantedIsReported(t *testing.T) {
	p := shell(t, "echo last words; exit 1")
	if err := p.start(nil); err != nil {
		t.Fatal(err)
	}
	<-p.current().done
	if err := p.died(); err == nil || !strings.Contains(err.Error(), "last words") {
		t.Errorf("got %v, want an error with the log", err)
	}
}

func TestAClosedProcessDoesNotStart(t *testing.T) {
	p := shell(t, "exec sleep 60")
	p.close()
	if err := p.Restart(t.Context()); err == nil {
		t.Error("want an error")
	}
}

func TestOnlyTheVeryProcessIsAlive(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := runningProcess{PID: cmd.Process.Pid, Identity: identity(cmd.Process.Pid)}
	other := runningProcess{PID: cmd.Process.Pid, Identity: identity(os.Getpid()) + "0"}
	if !p.alive() {
		t.Error("a running process is not seen")
	}
	if other.alive() || (runningProcess{PID: cmd.Process.Pid}).alive() {
		t.Error("another process with the same number is taken for it")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if p.alive() {
		t.Error("a process that is gone is seen")
	}
}
