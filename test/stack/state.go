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
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// A state says what runs in the background, for another process to see.
type state struct {
	// Supervisor is the process that started the others.
	Supervisor runningProcess `json:"supervisor"`

	// Ready says that all were ready once.
	Ready bool `json:"ready"`

	// Processes of the stack.
	Processes []runningProcess `json:"processes,omitempty"`
}

// A runningProcess is a process and what is needed to recognize it and to see how it is.
type runningProcess struct {
	Name     string `json:"name"`
	PID      int    `json:"pid"`
	Identity string `json:"identity"`
	Probe    Probe  `json:"probe"`
}

func statePath(dir string) string { return filepath.Join(dir, "stack.json") }

// readState returns the state of the stack in a directory; the zero value if there is none.
func readState(dir string) (state, error) {
	st := state{}
	b, err := os.ReadFile(statePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, fmt.Errorf("cannot read state: %w", err)
	}
	if err := json.Unmarshal(b, &st); err != nil {
		return st, fmt.Errorf("cannot read state %q: %w", statePath(dir), err)
	}
	return st, nil
}

// write writes the state; whoever reads it sees the old or the new one.
func (st state) write(dir string) error {
	b, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write state: %w", err)
	}
	tmp := statePath(dir) + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("cannot write state: %w", err)
	}
	if err := os.Rename(tmp, statePath(dir)); err != nil {
		return fmt.Errorf("cannot write state: %w", err)
	}
	return nil
}

// alive reports whether it still runs: this very process, not another one with its number.
func (p runningProcess) alive() bool {
	return p.PID > 0 && p.Identity != "" && identity(p.PID) == p.Identity
}

// check returns what is wrong with the stack.
func (st state) check(ctx context.Context) error {
	if !st.Ready {
		return errors.New("it is not ready yet")
	}
	for _, p := range st.Processes {
		if !p.alive() {
			return fmt.Errorf("%q does not run", p.Name)
		}
		if err := p.Probe.check(ctx); err != nil {
			return fmt.Errorf("%q is not ready: %w", p.Name, err)
		}
	}
	return nil
}

// kill ends what of the stack still runs. The supervisor stops the others; those it did not are killed.
func (st state) kill(ctx context.Context) error {
	if st.Supervisor.alive() {
		_ = syscall.Kill(st.Supervisor.PID, syscall.SIGTERM)
		if err := st.Supervisor.gone(ctx, 3*stopGrace); err != nil {
			_ = syscall.Kill(st.Supervisor.PID, syscall.SIGKILL)
		}
		if err := st.Supervisor.gone(ctx, stopGrace); err != nil {
			return err
		}
	}
	for _, p := range st.Processes {
		if p.alive() {
			_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		}
	}
	for _, p := range st.Processes {
		if err := p.gone(ctx, stopGrace); err != nil {
			return err
		}
	}
	return nil
}

// gone waits until the process is.
func (p runningProcess) gone(ctx context.Context, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, readyPoll, timeout, true, func(context.Context) (bool, error) {
		return !p.alive(), nil
	})
	if err != nil {
		return fmt.Errorf("cannot stop %q (process %d): %w", p.Name, p.PID, err)
	}
	return nil
}
