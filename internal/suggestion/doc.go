// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suggestion derives AllowancePolicies from a Composition: which field of a Claim
// and an XR feeds which fields of what is composed, as the patches of
// function-patch-and-transform say exactly, and as conditions of XRs and decision logs show
// where another function composes. What cannot be followed it says. It is as pure as the engine; only kubectl
// kausality uses it.
package suggestion
