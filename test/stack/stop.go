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
	"slices"
	"sync"
)

// Stop stops everything and removes what is left but the logs. It may be called more than once.
func (s *Stack) Stop() error {
	s.stop.Do(func() {
		processes := s.close()
		// The reverse of the order they were started in; those before the API server need no order.
		var last []*Process
		stops := make([]func() error, 0, len(processes))
		for _, p := range slices.Backward(processes) {
			if p.name == kubeAPIServer || p.name == etcd {
				last = append(last, p)
				continue
			}
			stops = append(stops, p.Stop)
		}
		err := all(stops...)
		for _, p := range last {
			err = errors.Join(err, p.Stop())
		}
		if s.service != nil {
			s.service.close()
		}
		s.launcher.close()
		s.stopErr = errors.Join(err, s.clean())
	})
	return s.stopErr
}

// close has no process start any more, and returns those that did.
func (s *Stack) close() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, p := range s.processes {
		p.close()
	}
	return s.processes
}

// clean removes what is worth nothing without the processes.
func (s *Stack) clean() error {
	if err := s.cleanPostgreSQL(); err != nil {
		return fmt.Errorf("cannot clean up: %w", err)
	}
	left := []string{s.path("run"), s.path("users"), s.path("kubeconfig"), s.path(psql)}
	if s.temporary && s.closed {
		left = []string{s.options.Dir}
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("cannot clean up: %w", err)
		}
	}
	return nil
}

// A step is something to do on the way up or down.
type step func(ctx context.Context) error

// parallel runs steps at the same time, waits for all, and returns the first error. That error cancels
// the context of the others.
func parallel(ctx context.Context, steps ...step) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, do := range steps {
		wg.Go(func() {
			if err := do(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// all calls functions at the same time and returns all their errors.
func all(fns ...func() error) error {
	errs := make([]error, len(fns))
	var wg sync.WaitGroup
	for i, fn := range fns {
		wg.Go(func() { errs[i] = fn() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
