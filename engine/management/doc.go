// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package management has what is said by spec.managementPolicies: which sets open and close a gate, what a
// Composition asks for (kausality.io/desired-policies), and whether a managed resource is governed.
//
// Its files:
//   - governed.go: whether a managed resource is governed ([Governed]); annotations of other versions of Kausality
//   - desired.go: management policies and mode of the Composition: kausality.io/desired-policies ([ParseDesired], [FormatDesired])
//   - sets.go: actions, sets that crossplane-runtime supports, the set of an open gate ([Open]) and of a new managed resource ([Initial])
//   - kinds.go: lists of kinds in flags and options, as KIND.GROUP, *.GROUP or * ([ParseKinds])
package management
