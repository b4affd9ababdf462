// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wish reports what of a desired object is a new wish. What is stored
// often reads otherwise than what was asked for: defaults, pruning, other
// webhooks. So a desired object is compared with a record of the last one that
// was let through, and with what is stored only where that does not say.
// It says what to apply once that is decided, and has the form of the record.
//
// Its files:
//   - compare.go: which desired fields are new ([Compare]): by record, field manager and stored value; fields left to others or to the
//     scale subresource; the first run
//   - value.go: when a desired and a stored value are the same: empty, quantity, set, default of a built-in kind; list elements matched
//   - empty.go: when an empty desired value is a change ([Comparison.isNew]), and the API server stores it
//   - leaf.go: the hashes of paths and values in a record; the names of list elements, by identifying fields
//   - answer.go: what Crossplane applies once it is decided ([Comparison.Answer]): held fields as stored, nothing owned by others
//   - recorded.go: which fields get into the new record, and which retain the old entry; the record of a new object ([RecordOf])
//   - record.go: the annotation with the record: read, write, size limit ([Record])
//   - written.go: the YAML of that annotation, without the YAML library where it is plain
//   - unchanged.go: the shortcut for desired state that is as before and stored ([Unchanged])
//   - at.go: one field in a record: same as before, reverted, restored, forgotten ([Record.Reverts])
//   - withheld.go: the places of held changes, in the same annotation; how a part of it is read and written
//   - repairs.go: past repairs of a composed resource, in the same annotation
//   - made.go: what may be created again, by digest in the state of the XR ([Made])
//   - disputed.go: whether a field may differ from the Composition, for the gate ([Disputed])
//   - renumber.go: records without guessable hashes, for the decision log
package wish
