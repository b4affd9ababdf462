// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package digest makes the digests by which changes are approved: one stands for a change of
// one object from one value to another, and for no other change.
package digest
