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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// url of the API server.
func (s *Stack) url() string { return "https://" + address(s.ports.apiServer) }

// EtcdURL is where etcd answers: what the API server has stored can be read there, every version of it.
func (s *Stack) EtcdURL() string { return "http://" + address(s.ports.etcdClient) }

// startAPIServer starts etcd and kube-apiserver, and connects to it.
func (s *Stack) startAPIServer(ctx context.Context) error {
	if err := s.startEtcd(ctx); err != nil {
		return err
	}
	c, err := s.apiServerCommand()
	if err != nil {
		return err
	}
	if err := s.startProcess(ctx, c); err != nil {
		return err
	}
	return s.connect()
}

// startEtcd starts etcd, which is not to wait for the disk: its data does not outlive the stack.
func (s *Stack) startEtcd(ctx context.Context) error {
	endpoint, peer := s.EtcdURL(), "http://"+address(s.ports.etcdPeer)
	return s.startProcess(ctx, command{
		name: etcd,
		path: s.tools.Binary(etcd),
		args: []string{
			"--name=default",
			"--data-dir=" + s.path("run", "etcd"),
			"--unsafe-no-fsync",
			"--listen-client-urls=" + endpoint,
			"--advertise-client-urls=" + endpoint,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			"--log-level=warn",
		},
		probe: Probe{URL: endpoint + "/health"},
	})
}

// apiServerCommand writes the keys of kube-apiserver and returns its command.
func (s *Stack) apiServerCommand() (command, error) {
	serving, err := s.authority.serving(kubeAPIServer)
	if err != nil {
		return command{}, err
	}
	tokens, err := newAuthority("kausality-stack-service-accounts")
	if err != nil {
		return command{}, err
	}
	signing, err := tokens.pair()
	if err != nil {
		return command{}, err
	}
	if err := serving.write(s.path("run", kubeAPIServer), s.authority.pem); err != nil {
		return command{}, err
	}
	if err := signing.write(s.path("run", "service-accounts"), tokens.pem); err != nil {
		return command{}, err
	}
	args := []string{
		"--etcd-servers=" + s.EtcdURL(),
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", s.ports.apiServer),
		"--advertise-address=" + loopback,
		// An Endpoints object may not name a loopback address.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true",
		"--authorization-mode=RBAC",
		"--client-ca-file=" + s.path("run", kubeAPIServer, caFile),
		"--tls-cert-file=" + s.path("run", kubeAPIServer, certFile),
		"--tls-private-key-file=" + s.path("run", kubeAPIServer, keyFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.path("run", "service-accounts", certFile),
		"--service-account-signing-key-file=" + s.path("run", "service-accounts", keyFile),
	}
	return command{
		name:  kubeAPIServer,
		path:  s.tools.Binary(kubeAPIServer),
		args:  slices.Concat(args, s.options.APIServerFlags),
		probe: Probe{URL: s.url() + "/readyz", CAFile: s.path("run", kubeAPIServer, caFile)},
	}, nil
}

// connect makes the harness's own client, and the administrator's kubeconfig.
func (s *Stack) connect() error {
	pair, err := s.authority.client("kausality-stack-admin", "system:masters")
	if err != nil {
		return err
	}
	s.admin = s.config(pair)
	if err := writeKubeconfig(s.path("kubeconfig"), s.admin); err != nil {
		return err
	}
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return fmt.Errorf("cannot create client: %w", err)
	}
	if err := apiextensionsv1.AddToScheme(known); err != nil {
		return fmt.Errorf("cannot create client: %w", err)
	}
	if s.client, err = client.New(s.admin, client.Options{Scheme: known}); err != nil {
		return fmt.Errorf("cannot create client: %w", err)
	}
	return nil
}

// startControllerManager starts kube-controller-manager with every controller it has by default, each
// with credentials of its own as in a real cluster: admission sees them by those names.
func (s *Stack) startControllerManager(ctx context.Context) error {
	const name = kubeControllerManager
	serving, err := s.authority.serving(name)
	if err != nil {
		return err
	}
	if err := serving.write(s.path("run", name), s.authority.pem); err != nil {
		return err
	}
	pair, err := s.authority.client("system:" + name)
	if err != nil {
		return err
	}
	kubeconfig := s.path("run", name, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, s.config(pair)); err != nil {
		return err
	}
	return s.startProcess(ctx, command{
		name: name,
		path: s.tools.Binary(name),
		args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			// Nothing comes through an aggregating proxy, so there is no such configuration to look up.
			"--authentication-skip-lookup=true",
			"--client-ca-file=" + s.path("run", name, caFile),
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=" + loopback,
			fmt.Sprintf("--secure-port=%d", s.ports.controllerManager),
			"--tls-cert-file=" + s.path("run", name, certFile),
			"--tls-private-key-file=" + s.path("run", name, keyFile),
			"--root-ca-file=" + s.path("run", name, caFile),
			"--service-account-private-key-file=" + s.path("run", "service-accounts", keyFile),
			"--use-service-account-credentials=true",
			"--leader-elect=false",
		},
		probe: Probe{
			URL:    "https://" + address(s.ports.controllerManager) + "/healthz",
			CAFile: s.path("run", name, caFile),
		},
	})
}
