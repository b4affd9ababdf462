// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package right says what the manager has to be allowed for the kinds that are
// governed, what of it is missing, and which roles give that. Its standing rights,
// for its own kinds, are in package/rbac.
package right
