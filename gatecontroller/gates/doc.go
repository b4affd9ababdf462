// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gates reconciles one object of a governed kind. Reconciler has its gate moved, and
// parents, owners and leftovers released, and writes the annotations of parents that no other
// request would bring up to date. Mover moves the gate of one managed resource: it reads
// policies and windows, plans one move by engine/gate, and writes spec.managementPolicies and
// the gate's record in one patch. Events, metrics and logs report it.
package gates
