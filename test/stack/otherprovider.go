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
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// startOtherProviders builds and starts the providers that the options name.
func (s *Stack) startOtherProviders(ctx context.Context) error {
	ports, err := freePorts(len(s.options.Providers))
	if err != nil {
		return err
	}
	steps := make([]step, 0, len(ports))
	for i, name := range slices.Sorted(maps.Keys(s.options.Providers)) {
		steps = append(steps, func(ctx context.Context) error {
			if err := s.startOtherProvider(ctx, name, s.options.Providers[name], ports[i]); err != nil {
				return fmt.Errorf("cannot run provider %q: %w", name, err)
			}
			return nil
		})
	}
	return parallel(ctx, steps...)
}

// startOtherProvider builds and starts one of them.
func (s *Stack) startOtherProvider(ctx context.Context, name string, p Provider, port int) error {
	root, err := repository()
	if err != nil {
		return err
	}
	path := s.path("run", "bin", name)
	if err := (goCommand{dir: filepath.Join(root, filepath.FromSlash(p.Module))}).build(ctx, path, p.Package); err != nil {
		return err
	}
	other := otherProvider{name: name, path: path, flags: p.Flags, port: port}
	if p.CRDs != "" {
		other.crds = filepath.Join(root, filepath.FromSlash(p.CRDs))
	}
	return s.runOtherProvider(ctx, other)
}

// An otherProvider is one that is built.
type otherProvider struct {
	name string

	// path of the binary; crds is the directory of its CustomResourceDefinitions, or empty.
	path, crds string

	flags []string
	port  int
}

// runOtherProvider starts it as a service account that may do everything, beside those of Crossplane's other providers.
func (s *Stack) runOtherProvider(ctx context.Context, p otherProvider) error {
	if p.crds != "" {
		if err := s.applyCRDs(ctx, p.crds, ""); err != nil {
			return err
		}
	}
	kubeconfig, _, err := s.createServiceAccount(ctx, CrossplaneNamespace, p.name)
	if err != nil {
		return err
	}
	if err := s.bindClusterAdmin(ctx, p.name); err != nil {
		return err
	}
	return s.startProcess(ctx, command{
		name: p.name,
		path: p.path,
		args: slices.Concat([]string{
			"--kubeconfig=" + kubeconfig,
			"--health-probe-bind-address=" + address(p.port),
		}, p.flags),
		probe: Probe{URL: "http://" + address(p.port) + "/readyz"},
	})
}
