// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check lints AllowancePolicies, AllowanceBindings, UpgradeAllowances and Enforcements together, without a
// cluster: besides what package typecheck finds of each, what admission refuses, duplicates, and chains whose next link
// is missing.
package check
