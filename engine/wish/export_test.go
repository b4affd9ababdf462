// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

// Unstorable are the fields whose zero values are never stored.
func Unstorable() []string { return unstorable() }
