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
)

// startProviderNop starts provider-nop, whose resources stand for nothing.
func (s *Stack) startProviderNop(ctx context.Context) error {
	if err := s.applyCRDs(ctx, s.tools.asset(providerNop, assetCRDs), ""); err != nil {
		return err
	}
	kubeconfig, _, err := s.createServiceAccount(ctx, CrossplaneNamespace, providerNop)
	if err != nil {
		return err
	}
	if err := s.bindClusterAdmin(ctx, providerNop); err != nil {
		return err
	}
	serving, err := s.authority.serving(providerNop)
	if err != nil {
		return err
	}
	certs := s.path("run", providerNop, "tls")
	if err := serving.write(certs, s.authority.pem); err != nil {
		return err
	}
	return s.startProcess(ctx, command{
		name: providerNop,
		path: s.tools.Binary(providerNop),
		args: []string{"--poll=2s", "--max-reconcile-rate=10"},
		env: []string{
			"KUBECONFIG=" + kubeconfig,
			"WEBHOOK_TLS_CERT_DIR=" + certs,
			envWebhookHost + "=" + loopback,
			fmt.Sprintf("%s=%d", envWebhookPort, s.ports.nopWebhook),
		},
		// It serves its webhook once it watches its kinds.
		probe: Probe{Address: address(s.ports.nopWebhook)},
	})
}
