// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managed says what a managed resource shows: whether its external object was made, whether a change of it has landed,
// what drifted, which object it stands for, and whether that is gone; and which of its allowances a gate still has to
// serve. Nothing is planned here.
package managed
