// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval carries out what becomes of ChangeApprovals: it reads what that follows
// from, and writes allowances of parents, statuses, and what a root remembers. What it is
// package engine/approval decides.
//
// Its files:
//   - settler.go: the approvals of one PendingChange, from read to written ([Settler.Settle])
//   - read.go: the input of a plan, from the cache, then again from the API server before an irreversible step ([Settler.readLive])
//   - reader.go: one object, from cache or API server; also for the gates ([Reader])
//   - answers.go: which users may approve, and live objects; each question asked once for a plan
//   - write.go: the plan carried out in order: statuses, memory, allowances of parents; events; deleted old approvals ([writer.write])
//   - rootedit.go: approved edits of a root, and the allowances that policies give for them ([writer.edits])
//   - edits.go: the record of edits, removed once all that results is approved and applied ([writer.forgetEdits])
//   - leftover.go: ChangeApprovals without a PendingChange ([Leftovers])
//   - index.go: the cache index of ChangeApprovals by PendingChange
//   - metrics.go: metrics of approvals by decision and state
package approval

// +kubebuilder:rbac:groups=kausality.io,resources=changeapprovals,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=kausality.io,resources=changeapprovals/status,verbs=patch
// +kubebuilder:rbac:groups=kausality.io,resources=pendingchanges,verbs=get;list;watch
