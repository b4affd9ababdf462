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
	"slices"
	"strings"
)

// A Manager is a kausality-manager beside the one that every stack has.
type Manager struct {
	*Process

	// MetricsURL is where it serves metrics, HealthURL where /healthz and /readyz are.
	MetricsURL, HealthURL string

	// WebhookAddress is where its webhook is, if it has one.
	WebhookAddress string
}

// managerPorts are where one manager serves.
type managerPorts struct {
	webhook, health, metrics int
}

// StartManager starts another manager, under the same service account (but for a flag --kubeconfig) and
// with the same flags as the first, and more, and returns when it is ready. With Options.Service the API server asks its webhook
// too; otherwise it has none.
func (s *Stack) StartManager(ctx context.Context, name string, flags ...string) (*Manager, error) {
	m, err := s.LaunchManager(ctx, name, flags...)
	if err != nil {
		return nil, err
	}
	if err := m.Ready(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// LaunchManager does so without waiting.
func (s *Stack) LaunchManager(ctx context.Context, name string, flags ...string) (*Manager, error) {
	free, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	at := managerPorts{webhook: free[0], health: free[1], metrics: free[2]}
	if s.service == nil {
		flags = append([]string{"--no-enable-webhook"}, flags...)
	}
	c, err := s.managerCommand(ctx, name, at, flags)
	if err != nil {
		return nil, err
	}
	p, err := s.launch(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Manager{
		Process:    p,
		MetricsURL: "http://" + address(at.metrics) + "/metrics",
		HealthURL:  "http://" + address(at.health),

		WebhookAddress: address(at.webhook),
	}, nil
}

// Manager returns the manager that every stack has.
func (s *Stack) Manager() *Manager {
	return &Manager{
		Process: s.Process(kausalityManager), MetricsURL: s.ManagerMetricsURL(),
		HealthURL: "http://" + address(s.ports.managerHealth), WebhookAddress: address(s.ports.managerWebhook),
	}
}

// managerCommand is how a manager runs, as its service account. The API server reaches its webhook by URL,
// as there are no Services without a kube-proxy.
func (s *Stack) managerCommand(ctx context.Context, name string, at managerPorts, flags []string) (command, error) {
	kubeconfig, _, err := s.createServiceAccount(ctx, KausalityNamespace, kausalityManager)
	if err != nil {
		return command{}, err
	}
	webhook := address(at.webhook)
	ready := Probe{URL: "http://" + address(at.health) + "/readyz"}
	if s.service != nil {
		s.service.add(backend{address: webhook, probe: ready})
		webhook = s.service.address()
	}
	// Flags do not replace earlier ones.
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--kubeconfig=") }) {
		flags = append([]string{"--kubeconfig=" + kubeconfig}, flags...)
	}
	args := []string{
		"--namespace=" + KausalityNamespace,
		"--service-account=" + kausalityManager,
		"--crossplane-service-account=system:serviceaccount:" + CrossplaneNamespace + ":" + crossplane,
		"--webhook-bind-address=" + address(at.webhook),
		"--webhook-url=https://" + webhook,
		"--health-probe-bind-address=" + address(at.health),
		"--metrics-bind-address=" + address(at.metrics),
	}
	return command{
		name:  name,
		path:  s.path("run", "bin", kausalityManager),
		args:  recorded(name, slices.Concat(args, s.options.ManagerFlags, flags)),
		probe: ready,
	}, nil
}
