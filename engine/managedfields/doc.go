// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedfields reads from an object's managedFields who manages which
// of its fields, and foresees with them what a server-side apply of a partial
// object will make of it: which fields it sets, which it removes because their
// owner stops mentioning them, and which it leaves to others.
//
// Its files:
//   - fields.go: which fields a manager applies ([Of]); Crossplane's field manager for an XR ([ManagerOf]); list keys
//   - merge.go: the object after a server-side apply ([Merge])
//   - list.go: lists in it, by key or as a set; live and desired elements matched ([Match]); their order
//   - extract.go: the part of an object that a manager applies: applied again, it changes nothing ([Extract])
//   - manages.go: whether a manager applies the field at a path
//   - writer.go: the manager that wrote a field last, with the time ([WriterOf])
//   - upgrade.go: whether Crossplane writes to the object before it applies it: the migration to server-side apply ([Upgraded])
package managedfields
