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
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Stack is a running control plane.
type Stack struct {
	options   Options
	temporary bool

	tools     Tools
	authority *authority
	ports     ports
	admin     *rest.Config
	client    client.Client
	launcher  *launcher
	service   *service

	postgreSQL PostgreSQL

	mu        sync.Mutex
	processes []*Process
	closed    bool

	stop    sync.Once
	stopErr error
}

// Start starts a stack and returns when all of it is ready. It stops when ctx is done, when it cannot be
// started, and at the latest, on Linux, with this process. The error of a process that does not get
// ready has the end of its log.
func Start(ctx context.Context, o Options) (*Stack, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare stack: %w", err)
	}
	start := time.Now()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	s.progressf("the stack is ready (%s)", time.Since(start).Round(time.Second/10))
	context.AfterFunc(ctx, func() { _ = s.Stop() })
	return s, nil
}

// prepare returns a stack of which nothing runs yet.
func prepare(o Options) (*Stack, error) {
	o, temporary, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &Stack{options: o, temporary: temporary}
	// What an earlier stack left when it was killed.
	if err := s.clean(); err != nil {
		return nil, err
	}
	for _, dir := range []string{s.path("run"), o.LogDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if s.ports, err = newPorts(); err != nil {
		return nil, err
	}
	if s.authority, err = newAuthority("kausality-stack"); err != nil {
		return nil, err
	}
	if o.Service {
		if s.service, err = newService(); err != nil {
			return nil, err
		}
	}
	s.launcher = newLauncher()
	return s, nil
}

// start starts the parts, those in parallel that can be.
func (s *Stack) start(ctx context.Context) error {
	var err error
	// 1. Build what is missing.
	if s.tools, err = Build(ctx, s.options.Output, s.options); err != nil {
		return err
	}
	// 2. The API server; the compiler works on our own programs meanwhile.
	steps := []step{s.startAPIServer}
	if s.options.has(Kausality) {
		steps = append(steps, s.buildOwn)
	}
	if err := parallel(ctx, steps...); err != nil {
		return err
	}
	// 3. What the later parts need to be somebody.
	if err := s.createNamespaces(ctx); err != nil {
		return err
	}
	// 4. Everything that depends on nothing but the API server.
	steps = []step{s.createUsers, s.startOtherProviders}
	if s.options.has(ControllerManager) {
		steps = append(steps, s.startControllerManager)
	}
	if s.options.has(Crossplane) {
		steps = append(steps, s.startCrossplane, s.startProvider)
		if s.options.ProviderNop {
			steps = append(steps, s.startProviderNop)
		}
	}
	if s.options.PostgreSQL {
		steps = append(steps, s.startPostgreSQL)
	}
	if s.options.has(Kausality) {
		steps = append(steps, s.applyOwn)
	}
	if err := parallel(ctx, steps...); err != nil {
		return err
	}
	// 5. Our own programs, in a control plane that is as they will find one.
	steps = nil
	if s.options.has(Kausality) {
		steps = append(steps, s.startManager)
	}
	if s.options.has(Kausality) && s.options.has(Crossplane) {
		steps = append(steps, s.startFunction, s.startOtherFunctions)
	}
	return parallel(ctx, steps...)
}

// Config returns the configuration of an administrator's client.
func (s *Stack) Config() *rest.Config { return rest.CopyConfig(s.admin) }

// CrossplaneBefore2 reports whether it runs Crossplane 1.20.
func (s *Stack) CrossplaneBefore2() bool { return s.options.CrossplaneBefore2 }

// Dir returns the directory with the kubeconfigs.
func (s *Stack) Dir() string { return s.options.Dir }

// LogDir returns the directory with the logs.
func (s *Stack) LogDir() string { return s.options.LogDir }

// Tools says where the binaries of the tools are, kubectl for one.
func (s *Stack) Tools() Tools { return s.tools }

// path of something in the stack's directory.
func (s *Stack) path(elem ...string) string {
	return filepath.Join(append([]string{s.options.Dir}, elem...)...)
}

// progressf says how it goes.
func (s *Stack) progressf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.options.Output, format+"\n", args...)
}
