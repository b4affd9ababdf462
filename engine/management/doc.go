// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package management has what is said by spec.managementPolicies: which sets open and close a gate, what a
// Composition asks for (kausality.io/desired-policies), and whether a managed resource is governed.
package management
