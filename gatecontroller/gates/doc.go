// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gates moves the gate of one managed resource. It reads the resource,
// policies and windows, plans one move by engine/gate, and writes
// spec.managementPolicies and the gate's record in one patch. Events, metrics and
// logs report it.
package gates
