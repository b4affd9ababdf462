// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity says which external object a managed resource stands for, and whether a change has it stand for another
// one. Such a change is a creation outside, and leaves the former external object behind: no provider deletes that.
//
// Its files:
//   - identity.go: provider config, external name and fields of a managed resource ([Of]), what differs ([Differs]), whether one change
//     does that; the external object as text; an identity written back
//   - kinds.go: the fields that identify external objects, by kind of managed resource; namespaced and cluster-scoped kinds ([Family])
//   - fields.go: further fields by kind, from the settings of the installation ([ParseFields])
//   - same.go: whether two managed resources represent one external object ([Same]), also by UID or ARN in status; the same kept in a
//     trimmed object ([Keep])
package identity
