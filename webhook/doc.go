// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the admission webhook: it translates between admission
// requests and the engine's decisions, with parents read from the API server
// and policies from informer caches.
package webhook

// +kubebuilder:rbac:groups=*,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=kausality.io,resources=allowancepolicies;upgradeallowances;enforcements,verbs=get;list;watch
