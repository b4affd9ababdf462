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
	"maps"
	"slices"
)

// rbacManager is the service account of Crossplane's RBAC manager.
const rbacManager = "rbac-manager"

// startRBACManager starts what gives Providers their rights, and people theirs on XRs and managed resources.
// It may do everything: what it may not give others is not at issue.
func (s *Stack) startRBACManager(ctx context.Context) error {
	if !s.options.Packages && !s.options.RBACManager {
		return nil
	}
	kubeconfig, _, err := s.createServiceAccount(ctx, CrossplaneNamespace, rbacManager)
	if err != nil {
		return err
	}
	if err := s.bindClusterAdmin(ctx, rbacManager); err != nil {
		return err
	}
	return s.startProcess(ctx, command{
		name: rbacManager,
		path: s.tools.Binary(s.options.crossplane()),
		args: []string{"rbac", "start"},
		env:  []string{"KUBECONFIG=" + kubeconfig},
	})
}

// A Container is a program of an image, to be run as a kubelet would.
type Container struct {
	// Name of its log.
	Name string

	// Path of the program, Args and Env its arguments and environment. It has nothing of ours.
	Path string
	Args []string
	Env  map[string]string

	// Ready says when it is.
	Ready Probe
}

// Run runs a container until the stack stops, and returns when it is ready.
func (s *Stack) Run(ctx context.Context, c Container) (*Process, error) {
	env := make([]string, 0, len(c.Env))
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+c.Env[name])
	}
	p, err := s.launch(ctx, command{name: c.Name, path: c.Path, args: c.Args, env: env, probe: c.Ready})
	if err != nil {
		return nil, err
	}
	if err := p.Ready(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Kubeconfig returns a file for a service account, which it creates if there is none, and binds it to
// nothing.
func (s *Stack) Kubeconfig(ctx context.Context, namespace, account string) (string, error) {
	path, _, err := s.createServiceAccount(ctx, namespace, account)
	return path, err
}
