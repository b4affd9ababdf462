// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package object has what all controllers do with objects of any kind: find one in
// the version that is served, write its metadata and finalizers, and wait until the
// cache shows a write. NewController makes a controller that the leader starts and ends,
// which those of a manager cannot be.
package object
