// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the admission webhook: it translates between admission
// requests and the engine's decisions, with parents and policies from informer
// caches. The [Mutator] stamps and holds; the [Enforcer] refuses, by what would
// be stored in the end; the [Validator] checks our own kinds. None of them keeps
// anything of a request, so that there may be any number of replicas.
package webhook

// Who deletes a namespace is written down on it before it goes.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
