// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch runs one controller for each kind that is governed, and stops it when
// the kind is not any more. It enqueues objects that nothing happened to, where a
// window or a policy has changed.
//
// Its files:
//   - watch.go: start and end of the controllers of kinds, also of parents with our finalizer ([Watches.Run], [Watches.Prune])
//   - bywindow.go: the gates that a changed UpgradeAllowance may open or close
//   - again.go: objects reconciled again without an event ([Watches.Enqueue])
//   - prompt.go: the request for a new plan of the configuration ([Prompt])
//   - metrics.go: the metric of watched kinds
package watch
