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
	"io"
	"os"
	"path/filepath"
)

// A Part is how far a stack goes; each includes those before it.
type Part int

// The parts of a stack.
const (
	// APIServer is etcd and kube-apiserver.
	APIServer Part = iota + 1

	// ControllerManager adds kube-controller-manager: garbage collection, Deployments, namespaces.
	ControllerManager

	// Crossplane adds Crossplane, function-patch-and-transform, function-auto-ready and
	// provider-kubernetes.
	Crossplane

	// Kausality adds this project's function and manager.
	Kausality
)

// Options of a stack. The zero value is a whole stack in a temporary directory.
type Options struct {
	// Dir gets the kubeconfigs, and, below run/, all the data of the stack, which is removed when it
	// stops. Empty means a temporary directory, removed when the stack stops.
	Dir string

	// LogDir gets one log per process, and stays. Empty means logs/ in Dir.
	LogDir string

	// Until is the last part to start. Zero means Kausality, so all of them.
	Until Part

	// ManagerOnly leaves out everything that the manager can do without: of a whole stack it is etcd,
	// kube-apiserver and kausality-manager that are left. There is nothing else then to take CPU time.
	ManagerOnly bool

	// APIServerFlags are added to those of kube-apiserver.
	APIServerFlags []string

	// Kubernetes is the minor version of kube-apiserver, kube-controller-manager and kubectl, such as 1.35: one with a
	// module of its own below modules/. Empty means the newest, of modules/kubernetes.
	Kubernetes string

	// CrossplaneBefore2 has it run Crossplane 1.20 in place of Crossplane 2.
	CrossplaneBefore2 bool

	// CrossplaneFlags are added to those of `crossplane core start`.
	CrossplaneFlags []string

	// CrossplaneEnv is added to its environment, as NAME=value.
	CrossplaneEnv []string

	// Packages has Crossplane install packages from registries and make Deployments of them, which
	// nothing runs, as there is no kubelet, and starts its RBAC manager.
	Packages bool

	// RBACManager starts Crossplane's RBAC manager, which makes roles of XRDs and of revisions of Providers.
	RBACManager bool

	// ProviderFlags are added to those of provider-kubernetes.
	ProviderFlags []string

	// ProviderNop adds provider-nop, which supports no management policies.
	ProviderNop bool

	// KubectlOfPath uses the kubectl of PATH, if there is one, instead of building the pinned one.
	KubectlOfPath bool

	// FunctionFlags are added to those of function-kausality.
	FunctionFlags []string

	// ManagerFlags are added to those of kausality-manager, such as --settle=2s.
	ManagerFlags []string

	// DecisionLog has the manager that every stack has log its decisions to decisions.log below run/ in Dir,
	// where kubectl kausality replay finds them.
	DecisionLog bool

	// Governed is what the manager may govern, as in the chart's value rbac.governed. Nil means whatever there
	// is, as rbac.wide, for who tries things out; Suite is for tests, and an empty list gives nothing.
	Governed []string

	// Service puts one address before the webhooks of all managers, as a Service is with kube-proxy.
	Service bool

	// PostgreSQL adds a PostgreSQL server and the provider for it, made with upjet, with a ProviderConfig
	// and a ClusterProviderConfig named default.
	PostgreSQL bool

	// Functions are more composition functions to run, by name: packages of this repository, relative to
	// its root, that take the flags --address and --tls-certs-dir.
	Functions map[string]string

	// Providers are more providers to run, by name.
	Providers map[string]Provider

	// Output gets the progress. Nil means none.
	Output io.Writer
}

// A Provider is one to run beside provider-kubernetes, or, where that is left out, instead of it.
type Provider struct {
	// Module is the directory of the module that the package is in, relative to the repository's root; empty
	// means the repository's own.
	Module string

	// Package of the module, relative to its directory. It takes the flags --kubeconfig and
	// --health-probe-bind-address.
	Package string

	// Flags are added to these.
	Flags []string

	// CRDs is the directory of its CustomResourceDefinitions, relative to the root.
	CRDs string
}

// has reports whether a part is to be started.
func (o Options) has(part Part) bool {
	return o.Until >= part && (!o.ManagerOnly || part == APIServer || part == Kausality)
}

// tools returns what a stack is built from.
func (o Options) tools() []tool {
	all := tools()
	for i := range all {
		if o.Kubernetes != "" && all[i].dir == kubernetesDir {
			all[i].dir += "-" + o.Kubernetes
		}
	}
	if o.ProviderNop {
		all = append(all, providerTool(providerNop))
	}
	if o.CrossplaneBefore2 {
		all = append(all, crossplaneToolBefore2())
	}
	if o.PostgreSQL {
		all = append(all, postgreSQLTool())
	}
	return all
}

// crossplane is the name of the tool that is to be its Crossplane.
func (o Options) crossplane() string {
	if o.CrossplaneBefore2 {
		return crossplaneBefore2
	}
	return crossplane
}

// complete fills in defaults, and reports whether the directory is a temporary one.
func (o Options) complete() (Options, bool, error) {
	temporary := o.Dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "kausality-stack-*")
		if err != nil {
			return o, false, err
		}
		o.Dir = dir
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, false, err
	}
	o.Dir = dir
	if o.LogDir == "" {
		o.LogDir = filepath.Join(o.Dir, "logs")
	}
	if o.LogDir, err = filepath.Abs(o.LogDir); err != nil {
		return o, false, err
	}
	if o.Until == 0 {
		o.Until = Kausality
	}
	if o.Output == nil {
		o.Output = io.Discard
	}
	return o, temporary, nil
}
