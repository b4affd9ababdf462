// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

// Unstorable are the fields whose zero values are never stored.
func Unstorable() []string { return unstorable() }

// Meant are the fields that are stored where they are empty.
func Meant() []string { return meant() }
