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

// Package stack runs a whole Crossplane control plane as local processes: etcd, the Kubernetes API
// server and controller manager, Crossplane, composition functions, provider-kubernetes, and this
// project's own function and manager. It needs no container engine and no registry: every tool is
// built from its Go module (see modules/), once, into a cache outside the tree, or taken from where
// KUBEBUILDER_ASSETS points to.
//
// Everything listens on 127.0.0.1 and on ports the kernel hands out, so stacks run side by side.
//
// Tests start one with Start, or with Main from a TestMain. People start one with `make up`, which
// calls Up, and stop it with `make down`, which calls Down.
package stack
