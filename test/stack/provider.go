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
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// providerConfig is the name of every ProviderConfig, so that managed resources need not name one.
const providerConfig = "default"

// startProvider starts provider-kubernetes, which manages objects of this very API server: they are the
// external objects.
func (s *Stack) startProvider(ctx context.Context) error {
	var kubeconfigPath string
	var kubeconfig []byte
	err := parallel(ctx,
		func(ctx context.Context) error {
			return s.applyCRDs(ctx, s.tools.asset(providerKubernetes, assetCRDs), "https://"+address(s.ports.providerWebhook)+"/convert")
		},
		func(ctx context.Context) (err error) {
			kubeconfigPath, kubeconfig, err = s.createServiceAccount(ctx, CrossplaneNamespace, providerKubernetes)
			if err != nil {
				return err
			}
			return s.bindClusterAdmin(ctx, providerKubernetes)
		},
	)
	if err != nil {
		return err
	}
	return parallel(ctx,
		func(ctx context.Context) error { return s.runProvider(ctx, kubeconfigPath) },
		func(ctx context.Context) error { return s.configureProvider(ctx, kubeconfig) },
	)
}

func (s *Stack) runProvider(ctx context.Context, kubeconfig string) error {
	serving, err := s.authority.serving(providerKubernetes)
	if err != nil {
		return err
	}
	certs, poll := s.path("run", providerKubernetes, "tls"), []string{"--poll=10s"}
	if slices.ContainsFunc(s.options.ProviderFlags, func(f string) bool { return strings.HasPrefix(f, "--poll=") }) {
		poll = nil // It may not be repeated.
	}
	if err := serving.write(certs, s.authority.pem); err != nil {
		return err
	}
	return s.startProcess(ctx, command{
		name: providerKubernetes,
		path: s.tools.Binary(providerKubernetes),
		args: slices.Concat(poll, []string{"--health-probe-bind-addr=" + address(s.ports.providerHealth)}, s.options.ProviderFlags),
		env: []string{
			"KUBECONFIG=" + kubeconfig,
			"WEBHOOK_TLS_CERT_DIR=" + certs,
			envWebhookHost + "=" + loopback,
			fmt.Sprintf("%s=%d", envWebhookPort, s.ports.providerWebhook),
			fmt.Sprintf("WEBHOOK_PORT=%d", s.ports.providerWebhook),
			"METRICS_BIND_ADDRESS=0",
		},
		probe: Probe{URL: "http://" + address(s.ports.providerHealth) + "/readyz"},
	})
}

// configureProvider creates the ProviderConfigs: of cluster-scoped managed resources, and both kinds of
// namespaced ones.
func (s *Stack) configureProvider(ctx context.Context, kubeconfig []byte) error {
	const name, key = "provider-kubernetes", "kubeconfig"
	err := s.applyTyped(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: CrossplaneNamespace, Name: name},
		Data:       map[string][]byte{key: kubeconfig},
	})
	if err != nil {
		return err
	}
	config := func(group, kind, namespace string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"credentials": map[string]any{
				"source": "Secret",
				"secretRef": map[string]any{
					"namespace": CrossplaneNamespace, "name": name, "key": key,
				},
			},
		}}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind})
		u.SetNamespace(namespace)
		u.SetName(providerConfig)
		return u
	}
	return s.apply(ctx,
		config("kubernetes.crossplane.io", "ProviderConfig", ""),
		config("kubernetes.m.crossplane.io", "ClusterProviderConfig", ""),
		config("kubernetes.m.crossplane.io", "ProviderConfig", "default"),
	)
}
