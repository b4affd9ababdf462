// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report keeps Reports of OpenReports current, one in each namespace and one for the
// cluster, where the CRDs of OpenReports are installed: what is not as somebody asked for
// it, what can change without that, and what waits. It judges what the caches have
// anyway, and watches nothing for it.
//
// Its files:
//   - report.go: which Reports are written or deleted, and when; the wait for the CRDs of OpenReports ([Reconciler.Reconcile])
//   - judge.go: the audit of all cached objects ([Reconciler.judge])
//   - write.go: one Report read, written or deleted; the worst of what writing them came to
package report

// It does not watch Reports: it lists their metadata, and reads one that somebody else wrote.
// +kubebuilder:rbac:groups=openreports.io,resources=reports;clusterreports,verbs=get;list;create;patch;delete
