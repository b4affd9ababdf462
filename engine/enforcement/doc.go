// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enforcement compiles Enforcements once and answers which of them
// govern an object, how strictly, and whom they except.
package enforcement
