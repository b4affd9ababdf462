// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pending keeps one PendingChange for each object that people edit and below which
// something is held. It hears of objects from the controllers of their kinds, finds the root of
// each, and writes where something has changed. What a status says package engine/pending
// decides.
package pending

// +kubebuilder:rbac:groups=kausality.io,resources=pendingchanges,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=kausality.io,resources=pendingchanges/status,verbs=patch
