// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval decides about ChangeApprovals: whether one is made, and what becomes of
// those that there are. It computes which allowances the parents of what is held get
// because of them, and which are taken away again.
package approval
