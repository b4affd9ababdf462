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
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// upTimeout is how long a stack may take to get ready, when the tools are built.
	upTimeout = 5 * time.Minute

	// repairTimeout is how long a stack that runs may take to put itself right.
	repairTimeout = 20 * time.Second

	// upPoll is how often it is asked.
	upPoll = 200 * time.Millisecond
)

// An Installation is a stack that runs in the background.
type Installation struct {
	// Dir gets kubeconfigs, logs and the data.
	Dir string

	// Output gets the progress.
	Output io.Writer

	// PostgreSQL has the provider for PostgreSQL built, too.
	PostgreSQL bool
}

// Up returns when the stack runs and is ready. If it already does it changes nothing; if it does so
// badly it is started anew. The command must call Supervise with that directory; it runs in a session
// of its own, so it outlives this process and its terminal.
func (i Installation) Up(ctx context.Context, supervise *exec.Cmd) error {
	// 1. One at a time.
	unlock, err := i.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// 2. Build here, where it is seen and can be interrupted.
	tools, err := Build(ctx, i.Output, Options{PostgreSQL: i.PostgreSQL, KubectlOfPath: true})
	if err != nil {
		return err
	}
	// 3. Leave alone what works.
	st, err := readState(i.Dir)
	if err != nil {
		return err
	}
	if st.Supervisor.alive() {
		if err = i.await(ctx, repairTimeout, nil); err == nil {
			i.summary("runs already", tools)
			return nil
		}
		i.sayf("the stack runs but %v; starting it anew", err)
	}
	// 4. Away with the rest.
	if err := i.remove(ctx); err != nil {
		return err
	}
	// 5. Start it.
	if err := i.spawn(ctx, supervise); err != nil {
		// Also when ctx is done.
		return errors.Join(err, i.remove(context.WithoutCancel(ctx)))
	}
	i.summary("is up", tools)
	return nil
}

// Down stops the stack, if it runs. The logs stay.
func (i Installation) Down(ctx context.Context) error {
	unlock, err := i.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := readState(i.Dir)
	if err != nil {
		return err
	}
	if err := i.remove(ctx); err != nil {
		return err
	}
	if st.Supervisor.PID == 0 {
		i.sayf("the stack does not run")
		return nil
	}
	i.sayf("the stack is down")
	return nil
}

// lock prevents others from starting or stopping the stack at the same time.
func (i Installation) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(i.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create directory of stack: %w", err)
	}
	return lock(ctx, filepath.Join(i.Dir, "lock"))
}

// remove stops whatever runs and removes what is left but the logs.
func (i Installation) remove(ctx context.Context) error {
	st, err := readState(i.Dir)
	if err != nil {
		return err
	}
	if err := st.kill(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(statePath(i.Dir)); err != nil {
		return fmt.Errorf("cannot remove state: %w", err)
	}
	return (&Stack{options: Options{Dir: i.Dir}}).clean()
}

// spawn starts the supervisor, shows what it says, and waits until the stack is ready.
func (i Installation) spawn(ctx context.Context, cmd *exec.Cmd) error {
	path := filepath.Join(i.Dir, "logs", "supervisor.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot start supervisor: %w", err)
	}
	log, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot start supervisor: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := i.await(ctx, upTimeout, ended); err != nil {
		return fmt.Errorf("cannot start stack: %w; %s", err, tail(path))
	}
	return nil
}

// await waits until the stack is ready, or the supervisor has ended.
func (i Installation) await(ctx context.Context, timeout time.Duration, ended <-chan error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, upPoll, timeout, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("the supervisor ended: %w", cmpErr(err, errors.New("exit status 0")))
		default:
		}
		st, err := readState(i.Dir)
		if err != nil {
			return false, err
		}
		last = st.check(ctx)
		return last == nil, nil
	})
	if err != nil && wait.Interrupted(err) && ctx.Err() == nil {
		return last
	}
	return err
}

// summary says where everything is.
func (i Installation) summary(how string, tools Tools) {
	i.sayf("the stack %s", how)
	i.sayf("  administrator  %s", filepath.Join(i.Dir, "kubeconfig"))
	i.sayf("  hans, anna     %s", filepath.Join(i.Dir, "users", "{hans,anna}.kubeconfig"))
	i.sayf("  logs           %s", filepath.Join(i.Dir, "logs"))
	if _, err := exec.LookPath(kubectl); err != nil {
		i.sayf("  kubectl        %s", tools.Binary(kubectl))
	}
}

func (i Installation) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(i.Output, format+"\n", args...)
}
