// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report keeps Reports of OpenReports current, one in each namespace and one for the
// cluster, where the CRDs of OpenReports are installed: what is not as somebody asked for
// it, what can change without that, and what waits. It judges what the caches have
// anyway, and watches nothing for it.
//
// Its files:
//   - report.go: when Reports are written; the wait for the CRDs of OpenReports ([Reconciler.Reconcile])
//   - judge.go: the audit of all cached objects ([Reconciler.judge])
//   - write.go: all Reports written or deleted ([Reconciler.write]); findings of a namespace that is gone, in the Report of the cluster
package report

// It does not watch Reports: it lists their metadata, and reads one that somebody else wrote.
// +kubebuilder:rbac:groups=openreports.io,resources=reports;clusterreports,verbs=get;list;create;patch;delete
