// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// All else in this package is generated: without this file go mod tidy would find no such package.

package cluster //nolint:revive // The generated zz_register.go has the package's comment.
