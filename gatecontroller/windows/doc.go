// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package windows reconciles one UpgradeAllowance at a time: it watches what its
// activateWhen names, evaluates it by engine/upgradeallowance, and writes its status and
// events.
package windows
