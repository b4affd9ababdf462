// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package change finds what differs between two versions of an object, as
// concrete field paths, and makes versions in which some of it is held.
//
// Differences are reported at leaves: an added map is one change per scalar in
// it. Lists whose elements are maps are matched by the keys that managedFields
// show, or else by a unique name, so that removing the first of n elements is one
// change and not n; other lists are matched by index. Numbers are compared by
// value. The field patterns of policies are here, too.
//
// Its files:
//   - change.go: one change; the changes between two versions ([Between]), and a version with some of them held ([Merge]); which
//     metadata counts
//   - merge.go: the recursion through maps and values; null and empty values
//   - list.go: list elements that are added, changed or removed; the place of a held element
//   - match.go: which elements of two lists are the same, by key or name
//   - keys.go: the keys of a list, read from managedFields
//   - order.go: another order of the same list elements, as one change; the path of an element that moved ([Change.Pattern])
//   - equal.go: equality of values, numbers by value; maps and lists that two versions share ([Shared])
//   - pattern.go: field patterns of policies, with wildcards and prefixes: what they cover, expand to, overlap with ([Pattern])
//   - path.go: the same coverage without parsing, for speed ([CoversText]); a recorded field above a path ([FieldCovers])
//   - element.go: the place of a change by the keys of list elements, for digests and records ([Locator]), and its path again ([Locate])
//   - text.go: a value as text, cut to a length
//   - find.go: the index of a value in a list
package change
