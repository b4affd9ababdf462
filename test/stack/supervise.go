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
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	// restartDelay is how long a process that ended stays down at first; it doubles with every time it
	// ends again soon.
	restartDelay = time.Second

	// restartDelayMax is how long at most.
	restartDelayMax = 30 * time.Second

	// restartForget is how long a process must run for its history to be forgotten.
	restartForget = time.Minute
)

// A supervisor keeps a stack running in the background.
type supervisor struct {
	stack *Stack

	// mu guards the state file.
	mu sync.Mutex
}

// Supervise starts a stack and keeps it running until ctx is done: processes that end are started again.
// What runs is written to a file in the stack's directory, by which Up and Down find it.
func Supervise(ctx context.Context, o Options) error {
	if o.Dir == "" {
		return errors.New("cannot supervise a stack without a directory")
	}
	self := state{Supervisor: supervising()}
	if err := self.write(o.Dir); err != nil {
		return err
	}
	defer func() { _ = os.Remove(statePath(o.Dir)) }()
	s, err := Start(ctx, o)
	if err != nil {
		return err
	}
	sup := &supervisor{stack: s}
	if err := sup.write(); err != nil {
		return errors.Join(err, s.Stop())
	}
	var wg sync.WaitGroup
	for _, p := range s.Processes() {
		wg.Go(func() { sup.keep(ctx, p) })
	}
	wg.Wait()
	return s.Stop()
}

// supervising returns this process.
func supervising() runningProcess {
	return runningProcess{Name: "supervisor", PID: os.Getpid(), Identity: identity(os.Getpid())}
}

// write writes down what runs.
func (sup *supervisor) write() error {
	sup.mu.Lock()
	defer sup.mu.Unlock()
	st := state{Supervisor: supervising(), Ready: true}
	for _, p := range sup.stack.Processes() {
		running := runningProcess{Name: p.name, Probe: p.probe}
		if r := p.current(); r != nil {
			running.PID, running.Identity = r.cmd.Process.Pid, r.identity
		}
		st.Processes = append(st.Processes, running)
	}
	return st.write(sup.stack.Dir())
}

// keep starts a process again whenever it ends, until ctx is done.
func (sup *supervisor) keep(ctx context.Context, p *Process) {
	delay := restartDelay
	for {
		started := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-p.current().done:
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > restartForget {
			delay = restartDelay
		}
		sup.stack.progressf("%v", cmpErr(p.died(), fmt.Errorf("%q ended", p.name)))
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		delay = min(2*delay, restartDelayMax)
		if err := p.Restart(ctx); err != nil {
			sup.stack.progressf("%v", err)
		}
		if err := sup.write(); err != nil {
			sup.stack.progressf("%v", err)
		}
	}
}

// cmpErr returns err, or instead if there is none.
func cmpErr(err, instead error) error {
	if err != nil {
		return err
	}
	return instead
}
