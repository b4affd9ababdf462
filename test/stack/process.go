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
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kausality-io/kausality-crossplane/test/patience"
)

const (
	// readyPoll is how often a process is asked whether it is ready.
	readyPoll = 50 * time.Millisecond

	// stopGrace is how long a process may take to stop by itself before it is killed: what a pod gets.
	stopGrace = 30 * time.Second
)

// A command is what a process runs.
type command struct {
	name  string
	path  string
	args  []string
	as    *credential
	env   []string
	probe Probe

	// stop is the signal that has it end; zero means SIGTERM.
	stop syscall.Signal
}

// A Process is one part of the stack.
type Process struct {
	command

	log      string
	launcher *launcher

	mu     sync.Mutex
	run    *run
	closed bool
}

// A run is one life of a process.
type run struct {
	cmd      *exec.Cmd
	identity string

	// wanted says that we ended it; guarded by the process's lock.
	wanted bool

	// done is closed when it has ended, err then says how.
	done chan struct{}
	err  error
}

// Name of the process, as Stack.Process takes it.
func (p *Process) Name() string { return p.name }

// Log returns the path of its log.
func (p *Process) Log() string { return p.log }

// PID returns its number, 0 while it does not run.
func (p *Process) PID() int {
	if r := p.current(); r != nil && !r.ended() {
		return r.cmd.Process.Pid
	}
	return 0
}

// Kill ends it at once, as a crash would, and waits until it is gone. It does not come back by itself.
func (p *Process) Kill() error {
	r := p.end()
	if r == nil {
		return nil
	}
	if err := r.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("cannot kill %q: %w", p.name, err)
	}
	<-r.done
	return nil
}

// Stop asks it to end, and kills it if it has not within 10 seconds.
func (p *Process) Stop() error {
	r := p.end()
	if r == nil {
		return nil
	}
	if err := r.signal(cmp.Or(p.stop, syscall.SIGTERM)); err != nil {
		return fmt.Errorf("cannot stop %q: %w", p.name, err)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-r.done:
		return nil
	case <-grace.C:
		return p.Kill()
	}
}

// Restart kills it if it runs, starts it, and waits until it is ready. This once it also gets the
// extra flags.
func (p *Process) Restart(ctx context.Context, extra ...string) error {
	if err := p.Kill(); err != nil {
		return err
	}
	if err := p.start(extra); err != nil {
		return err
	}
	return p.ready(ctx)
}

// start starts it; its log is appended to.
func (p *Process) start(extra []string) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot start %q: %w", p.name, err)
	}
	// The child has a descriptor of its own.
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.path, slices.Concat(p.args, extra)...) //nolint:noctx // It lives until Stop or Kill.
	cmd.Env = withCollector(p.env)
	cmd.Stdout, cmd.Stderr = log, log
	r := &run{cmd: cmd, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("cannot start %q: %w", p.name, errStopped)
	}
	if err := p.launcher.start(cmd, p.as); err != nil {
		return fmt.Errorf("cannot start %q: %w", p.name, err)
	}
	r.identity = identity(cmd.Process.Pid)
	p.run = r
	go func() {
		r.err = cmd.Wait()
		close(r.done)
	}()
	return nil
}

// envCollector is how much garbage a program of Go may have, in percent of what it uses.
const envCollector = "GOGC"

// withCollector has a process collect garbage as this one does, unless its environment says how: who
// runs many stacks at once has more memory than time.
func withCollector(env []string) []string {
	percent, ok := os.LookupEnv(envCollector)
	if !ok || env == nil || slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, envCollector+"=") }) {
		return env // Without an environment of its own it has this one.
	}

	return append(slices.Clip(env), envCollector+"="+percent)
}

// Ready waits until it is ready.
func (p *Process) Ready(ctx context.Context) error { return p.ready(ctx) }

// ready waits until it is. The error has the end of the log.
func (p *Process) ready(ctx context.Context) error {
	r := p.current()
	if r == nil {
		return fmt.Errorf("cannot wait for %q: it was not started", p.name)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyPoll, patience.Limit, true, func(ctx context.Context) (bool, error) {
		if r.ended() {
			return false, fmt.Errorf("it ended: %w", r.result())
		}
		last = p.probe.check(ctx)
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	if wait.Interrupted(err) {
		err = errors.Join(err, last)
	}
	return fmt.Errorf("cannot get %q ready: %w; %s", p.name, err, tail(p.log))
}

// died returns the error of a run that ended although nobody wanted it to.
func (p *Process) died() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || p.run.wanted || !p.run.ended() {
		return nil
	}
	return fmt.Errorf("%q ended: %w; %s", p.name, p.run.result(), tail(p.log))
}

// close has it never start again.
func (p *Process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// end marks the current run as ended by us.
func (p *Process) end() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		p.run.wanted = true
	}
	return p.run
}

// signal signals the whole process group, if it still runs.
func (r *run) signal(sig syscall.Signal) error {
	if r.ended() {
		return nil
	}
	err := syscall.Kill(-r.cmd.Process.Pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// result says how an ended run ended.
func (r *run) result() error {
	if r.err == nil {
		return errors.New("exit status 0")
	}
	return r.err
}
