// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gates reconciles one object of a governed kind. Reconciler has its gate moved, and
// parents, owners and leftovers released, and writes the annotations of parents that no other
// request would bring up to date. Mover moves the gate of one managed resource: it reads
// policies and windows, plans one move by engine/gate, and writes spec.managementPolicies and
// the gate's record in one patch. Events, metrics and logs report it.
// Ungated and Gateless report managed resources without a gate.
//
// Its files:
//   - reconciler.go: one object: which of gate, parent annotations and finalizers it needs, and in which order ([Reconciler.Reconcile])
//   - mover.go: the move of a gate as one patch, with events; warnings of drift and of a shared external object ([Mover.Reconcile])
//   - policygate.go: closeWhen, settle and maxOpen, as policies set them
//   - openers.go: UpgradeAllowances that open gates by themselves
//   - event.go: the reason in the event of a move, with the requesters
//   - ledger.go: metrics of open and overdue gates and of drift; memory of events, so that each comes once ([Ledger])
//   - parent.go: annotations of a parent that only the manager updates, such as used allowances ([Parents])
//   - unused.go: grants to delete, removed a minute after a deletion that did not happen
//   - ungated.go: managed resources whose provider does not support management policies: metric and count ([Ungated])
//   - gateless.go: managed resources without a gate below an XR that runs the function: event and metric ([Gateless])
package gates
