// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate is the state machine of a managed resource's
// spec.managementPolicies: closed while nothing is allowed, open for
// exactly the allowed actions until they have landed in the external system.
package gate
