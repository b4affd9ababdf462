// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typecheck finds what is wrong with one AllowancePolicy, AllowanceBinding, UpgradeAllowance or
// Enforcement by itself, and by the schemas of the kinds that it names: paths and expressions that do not
// fit, unknown verbs, parts that nobody can reach. Each finding has a rule; [Rules] lists all of them, also
// those of package check. The manager writes findings into the object's status.
package typecheck
