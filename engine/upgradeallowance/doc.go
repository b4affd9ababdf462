// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeallowance judges UpgradeAllowances, the upgrade windows:
// whether one can be used, whether it is in force, and which stored changes it
// has allowed. Whether one allows a change is a matter of package decision.
package upgradeallowance
