// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package composition decides what a Composition may do to the resources it
// composes: it turns what a pipeline desires into what it may apply, with
// everything that is not allowed kept as observed.
package composition
