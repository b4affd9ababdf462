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
	"path/filepath"
	"slices"
)

// Process returns the process of that name, which is that of its binary: etcd, kube-apiserver,
// kube-controller-manager, crossplane, function-patch-and-transform, function-auto-ready,
// provider-kubernetes, function-kausality, kausality-manager, postgres, provider-postgresql, and those that the options name. It is
// nil if the stack has none.
func (s *Stack) Process(name string) *Process {
	for _, p := range s.Processes() {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Processes returns all processes, in the order they were started.
func (s *Stack) Processes() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.processes)
}

// Err returns an error for every process that has ended without being told to, with the end of its log.
func (s *Stack) Err() error {
	processes := s.Processes()
	errs := make([]error, 0, len(processes))
	for _, p := range processes {
		errs = append(errs, p.died())
	}
	return errors.Join(errs...)
}

// errStopped is why nothing starts any more.
var errStopped = errors.New("the stack is stopped")

// startProcess starts a process and waits until it is ready.
func (s *Stack) startProcess(ctx context.Context, c command) error {
	p, err := s.launch(ctx, c)
	if err != nil {
		return err
	}
	return p.ready(ctx)
}

// launch starts a process that Stop will stop.
func (s *Stack) launch(ctx context.Context, c command) (*Process, error) {
	p := s.newProcess(c)
	s.mu.Lock()
	s.processes = append(s.processes, p)
	if s.closed {
		p.close()
	}
	s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cannot start %q: %w", c.name, context.Cause(ctx))
	}
	if err := p.start(nil); err != nil {
		return nil, err
	}
	return p, nil
}

// runCommand runs a process until it ends by itself.
func (s *Stack) runCommand(ctx context.Context, c command) error {
	p := s.newProcess(c)
	if err := p.start(nil); err != nil {
		return err
	}
	r := p.current()
	select {
	case <-r.done:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Kill())
	}
	if r.err != nil {
		return fmt.Errorf("cannot run %q: %w; %s", c.name, r.err, tail(p.log))
	}
	return nil
}

func (s *Stack) newProcess(c command) *Process {
	// Nothing else of our environment: neither a cluster nor a proxy of the user is theirs.
	c.env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + s.path("run"),
		"TMPDIR=" + os.TempDir(),
	}, c.env...)
	return &Process{command: c, launcher: s.launcher, log: filepath.Join(s.options.LogDir, c.name+".log")}
}
