// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity says which external object a managed resource stands for, and whether a change has it stand for another
// one. Such a change is a creation outside, and leaves the former external object behind: no provider deletes that.
package identity
