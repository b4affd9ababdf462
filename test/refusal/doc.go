// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal shows that each refusal there is has an example in examples/invalid, and that
// each of these is refused for the reason that it states; without an API server.
package refusal
