// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedfields reads from an object's managedFields who manages which
// of its fields, and foresees with them what a server-side apply of a partial
// object will make of it: which fields it sets, which it removes because their
// owner stops mentioning them, and which it leaves to others.
package managedfields
