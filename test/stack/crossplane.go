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
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Secrets Crossplane keeps its certificates in, named as its Helm chart names them.
const (
	rootCASecret    = "crossplane-root-ca"
	clientTLSSecret = "crossplane-tls-client"
	serverTLSSecret = "crossplane-tls-server"
)

// startCrossplane starts Crossplane and the functions that are not ours.
func (s *Stack) startCrossplane(ctx context.Context) error {
	kubeconfig, _, err := s.createServiceAccount(ctx, CrossplaneNamespace, crossplane)
	if err != nil {
		return err
	}
	if err := s.bindClusterAdmin(ctx, crossplane); err != nil {
		return err
	}
	if err := s.initCrossplane(ctx, kubeconfig); err != nil {
		return err
	}
	return parallel(ctx,
		func(ctx context.Context) error { return s.startCrossplaneCore(ctx, kubeconfig) },
		s.startRBACManager,
		s.functionStep(functionPatchAndTransform, s.ports.patchAndTransform),
		s.functionStep(functionAutoReady, s.ports.autoReady),
	)
}

// initCrossplane runs what Crossplane's init container runs. It creates CRDs and, without waiting until
// they are served, objects of these kinds, so on a new API server it may have to run again.
func (s *Stack) initCrossplane(ctx context.Context, kubeconfig string) error {
	const attempts = 10
	c := command{
		name: crossplane + "-init",
		path: s.tools.Binary(s.options.crossplane()),
		args: []string{
			"core", "init",
			"--namespace=" + CrossplaneNamespace,
			"--webhook-enabled=false",
			"--cr-ds-path=" + s.tools.asset(s.options.crossplane(), assetCRDs),
			"--webhook-configurations-path=" + s.tools.asset(s.options.crossplane(), assetWebhooks),
			"--tlsca-secret-name=" + rootCASecret,
			"--tls-client-secret-name=" + clientTLSSecret,
			"--tls-server-secret-name=" + serverTLSSecret,
		},
		env: []string{"KUBECONFIG=" + kubeconfig},
	}
	var last error
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: attempts}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = s.runCommand(ctx, c)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cannot initialize Crossplane: %w", cmp.Or(last, err))
	}
	return nil
}

// startCrossplaneCore starts Crossplane's controllers. Unless the options say so nothing runs packages, as
// there are none.
func (s *Stack) startCrossplaneCore(ctx context.Context, kubeconfig string) error {
	pair, ca, err := s.secretKeyPair(ctx, clientTLSSecret)
	if err != nil {
		return err
	}
	certs, packages := s.path("run", crossplane, "tls-client"), s.path("run", crossplane, "xpkg")
	if err := pair.write(certs, ca); err != nil {
		return err
	}
	if err := os.MkdirAll(packages, 0o700); err != nil {
		return fmt.Errorf("cannot create package cache: %w", err)
	}
	packageRuntime := "External"
	if s.options.Packages {
		packageRuntime = "Deployment"
	}
	args := []string{
		"core", "start",
		"--namespace=" + CrossplaneNamespace,
		"--enable-webhooks=false",
		"--package-runtime=" + packageRuntime,
		"--xpkg-cache-dir=" + packages,
		"--tls-client-certs-dir=" + certs,
		fmt.Sprintf("--metrics-port=%d", s.ports.crossplaneMetrics),
		fmt.Sprintf("--health-probe-port=%d", s.ports.crossplaneHealth),
		// Nothing depends on it while watches work; 1m by default.
		"--poll-interval=10s",
	}
	if !s.options.CrossplaneBefore2 {
		// People take hours for what tests and the demo do in seconds. By default Crossplane 2 stops to
		// listen to an XR with more than some 50 events at once, for up to minutes.
		args = append(args, "--circuit-breaker-burst=2000", "--circuit-breaker-refill-rate=20")
	}
	return s.startProcess(ctx, command{
		name:  crossplane,
		path:  s.tools.Binary(s.options.crossplane()),
		args:  slices.Concat(args, s.options.CrossplaneFlags),
		env:   append([]string{"KUBECONFIG=" + kubeconfig}, s.options.CrossplaneEnv...),
		probe: Probe{URL: "http://" + address(s.ports.crossplaneHealth) + "/readyz"},
	})
}

// secretKeyPair reads a certificate Crossplane made, and the certificate of who signed it, if it is
// there.
func (s *Stack) secretKeyPair(ctx context.Context, name string) (keyPair, []byte, error) {
	secret := &corev1.Secret{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: CrossplaneNamespace, Name: name}, secret); err != nil {
		return keyPair{}, nil, fmt.Errorf("cannot read certificate of Crossplane: %w", err)
	}
	pair := keyPair{cert: secret.Data[corev1.TLSCertKey], key: secret.Data[corev1.TLSPrivateKeyKey]}
	return pair, secret.Data[caFile], nil
}

// CrossplaneMetricsURL is where Crossplane serves its metrics.
func (s *Stack) CrossplaneMetricsURL() string {
	return "http://" + address(s.ports.crossplaneMetrics) + "/metrics"
}
