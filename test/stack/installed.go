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
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Installed is a manager that somebody else than the stack installed: how its pod is to be run.
type Installed struct {
	// Name of the process.
	Name string

	// Version of the manager, of those that BuildManager has built. Empty for what BuildPrograms built.
	Version string

	// Namespace and ServiceAccount of the pod.
	Namespace, ServiceAccount string

	// Args and Env are those of its container, Env as NAME=value.
	Args, Env []string

	// HealthPort is where it serves /readyz on 127.0.0.1, WebhookPort where its webhook is.
	HealthPort, WebhookPort int
}

// BuildPrograms builds this project's programs for a stack that runs none of them.
func (s *Stack) BuildPrograms(ctx context.Context) error { return s.buildOwn(ctx) }

// BuildManager builds a manager that says it is of a version.
func (s *Stack) BuildManager(ctx context.Context, version string) error {
	return s.buildPrograms(ctx, filepath.Join("versions", version), version, kausalityManager)
}

// ServiceURL is where the webhooks of all managers are, with Options.Service.
func (s *Stack) ServiceURL() string { return "https://" + s.service.address() }

// FreePorts returns ports of 127.0.0.1 that nobody listens on.
func FreePorts(n int) ([]int, error) { return freePorts(n) }

// RunInstalled runs a manager with exactly these arguments and this environment, as a service account
// that must be there. All that is added is a kubeconfig in place of the token in the pod. It does not
// wait until it is ready. The stack has to have Options.Service.
func (s *Stack) RunInstalled(ctx context.Context, m Installed) (*Process, error) {
	account := &corev1.ServiceAccount{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.ServiceAccount}, account); err != nil {
		return nil, fmt.Errorf("cannot get ServiceAccount %q: %w", m.ServiceAccount, err)
	}
	kubeconfig, _, err := s.createServiceAccount(ctx, m.Namespace, m.ServiceAccount)
	if err != nil {
		return nil, err
	}
	path := s.path("run", "bin", kausalityManager)
	if m.Version != "" {
		path = s.path("run", "versions", m.Version, kausalityManager)
	}
	ready := Probe{URL: "http://" + address(m.HealthPort) + "/readyz"}
	s.service.add(backend{address: address(m.WebhookPort), probe: ready})
	return s.launch(ctx, command{
		name:  m.Name,
		path:  path,
		args:  slices.Concat(m.Args, []string{"--kubeconfig=" + kubeconfig}),
		env:   m.Env,
		probe: ready,
	})
}
