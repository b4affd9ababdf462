// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval decides about ChangeApprovals: [Admit] about the creation of one, and [Compute] about those that there
// are. It plans which allowances the parents of held changes get because of them, and which are taken away again.
package approval
