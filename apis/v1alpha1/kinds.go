// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Kinds that allow or enforce something.
const (
	// KindPolicy is that of policies.
	KindPolicy = "AllowancePolicy"
	// KindBinding is that of bindings.
	KindBinding = "AllowanceBinding"
	// KindUpgrade is that of windows.
	KindUpgrade = "UpgradeAllowance"
	// KindEnforcement is that of Enforcements.
	KindEnforcement = "Enforcement"
)
