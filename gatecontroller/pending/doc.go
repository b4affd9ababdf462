// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pending keeps one PendingChange for each object that people edit and below which
// something is held. It hears of objects from the controllers of their kinds, finds the root of
// each, and writes where something has changed. What a status says package engine/pending
// decides. Refusals add the changes that the webhook refused.
//
// Its files:
//   - observe.go: objects seen by the controllers of their kinds; a new state of held changes leads to the root ([Reconciler.Observe])
//   - index.go: the memory of these objects and their roots, and the queue of the controller
//   - controller.go: the other events: PendingChanges and ChangeApprovals ([Reconciler.Controller])
//   - reconciler.go: one PendingChange: created, updated, settled by approvals, deleted an hour after its end ([Reconciler.Reconcile])
//   - root.go: the object that people edit, above any other ([Reconciler.rootOf])
//   - gather.go: the objects below a root that its status is about ([Reconciler.gather])
//   - read.go: one object, from cache or API server; metadata alone where that is enough ([Objects])
//   - functions.go: recently updated functions, as a hint at the cause
//   - refusals.go: changes refused by the webhook, written by each replica, without leader election ([Refusals])
//   - metrics.go: metrics of open PendingChanges and the oldest held change
package pending

// +kubebuilder:rbac:groups=kausality.io,resources=pendingchanges,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=kausality.io,resources=pendingchanges/status,verbs=patch
