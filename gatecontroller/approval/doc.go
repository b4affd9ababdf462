// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval carries out what becomes of ChangeApprovals: it reads what that follows
// from, and writes allowances of parents, statuses, and what a root remembers. What it is
// package engine/approval decides.
package approval

// +kubebuilder:rbac:groups=kausality.io,resources=changeapprovals,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=kausality.io,resources=changeapprovals/status,verbs=patch
// +kubebuilder:rbac:groups=kausality.io,resources=pendingchanges,verbs=get;list;watch
