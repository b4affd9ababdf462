// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package change finds what differs between two versions of an object, as
// concrete field paths, and makes versions in which some of it is held.
//
// Differences are reported at leaves: an added map is one change per scalar in
// it. Lists whose elements are maps with a unique name are matched by name, so
// that removing the first of n elements is one change and not n; other lists
// are matched by index. Numbers are compared by value.
package change
