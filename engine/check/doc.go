// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check finds everything about AllowancePolicies, AllowanceBindings, UpgradeAllowances and
// Enforcements that can be found without a request: what admission refuses, paths and expressions
// that do not fit the schemas of kinds, parts that nobody can reach, and chains whose next link is
// missing. Each finding has a rule; [Rules] lists all of them. The manager writes the findings about
// one object into its status. The command line lints many objects together, without a cluster.
package check
