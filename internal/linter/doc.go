// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package linter lints objects of files: it validates those of Kausality as the API server
// does, has the engine check them against the definitions among them, and knows where in
// the files what it finds is.
package linter
