// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy compiles AllowancePolicies once and answers which of them a
// change matches. Policies are indexed by the kind they match, so that those
// about other kinds cost nothing.
package policy
