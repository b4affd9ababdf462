// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package windows reconciles one UpgradeAllowance at a time: it watches what its
// activateWhen names, evaluates it by engine/upgradeallowance, and writes its status and
// events.
//
// Its files:
//   - window.go: the status of an UpgradeAllowance: Active by time and workload, Ready by kinds and rights ([Reconciler.Reconcile])
//   - windowtarget.go: watches of the pods or workload in activateWhen, a cache each ([targets.observe])
//   - windowevent.go: the event of a start, first use or end, once
package windows
