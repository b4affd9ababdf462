// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package right says what the manager has to be allowed for the kinds that are
// governed, what of it is missing, and which roles give that. Its standing rights,
// for its own kinds, are in package/rbac.
//
// Its files:
//   - need.go: rights of the manager for the kinds of a policy, window or Enforcement ([OfPolicy], [Need.Rights])
//   - missing.go: missing rights ([Missing]); a message with the command to add them ([Message])
//   - role.go: ClusterRoles with them ([Roles]); the role to read policy parameters, also for Crossplane
package right
