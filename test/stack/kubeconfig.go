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
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// configName is what cluster, user and context are called in kubeconfigs.
const configName = "kausality"

// config returns the client configuration of whoever has that key pair.
func (s *Stack) config(pair keyPair) *rest.Config {
	return &rest.Config{
		Host: s.url(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   s.authority.pem,
			CertData: pair.cert,
			KeyData:  pair.key,
		},
		// Tests and the harness are not to be slowed down by their own client.
		QPS: -1,
	}
}

// tokenConfig returns the client configuration of whoever has that token.
func (s *Stack) tokenConfig(token string) *rest.Config {
	cfg := s.config(keyPair{})
	cfg.BearerToken = token
	return cfg
}

// encodeKubeconfig returns a configuration as a kubeconfig.
func encodeKubeconfig(cfg *rest.Config) ([]byte, error) {
	kubeconfig := api.NewConfig()
	kubeconfig.Clusters[configName] = &api.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	kubeconfig.AuthInfos[configName] = &api.AuthInfo{
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
		Token:                 cfg.BearerToken,
	}
	kubeconfig.Contexts[configName] = &api.Context{Cluster: configName, AuthInfo: configName, Namespace: "default"}
	kubeconfig.CurrentContext = configName
	b, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot encode kubeconfig: %w", err)
	}
	return b, nil
}

// writeKubeconfig writes a configuration as a kubeconfig.
func writeKubeconfig(path string, cfg *rest.Config) error {
	b, err := encodeKubeconfig(cfg)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot write kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("cannot write kubeconfig: %w", err)
	}
	return nil
}
