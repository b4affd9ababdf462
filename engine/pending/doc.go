// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pending makes of what is held below one object that people edit the status of its
// PendingChange. Equal inputs give equal bytes, in whatever order objects were read.
//
// Its files:
//   - status.go: the status of a PendingChange ([Status]); its [Input]
//   - entry.go: held changes from the XR's state, from kausality.io/held, and from drift; hidden values from other namespaces
//   - refused.go: refused writes of controllers below an edited root ([Refusal]); the root's edits, to be approved instead
//   - keep.go: changes still listed while a pipeline fails or an object is unreadable; since when each is held
//   - cause.go: cause of each change: edit, drift, pipeline; requesters and the number of approvals
//   - functions.go: function updates as the cause ([Updates])
//   - destroys.go: changes that destroy something ([Destroys])
//   - order.go: order of the list ([Compare])
//   - size.go: limits of the list in entries and bytes
//   - condition.go: the condition Current: the list is complete, or a pipeline failed
//   - name.go: name and namespace of the PendingChange ([Name])
//   - object.go: objects, keys and references; the list of an XR, empty without the function ([Listed])
package pending
