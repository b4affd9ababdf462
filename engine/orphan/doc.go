// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package orphan is about what is left when something was deleted by accident: a
// managed resource whose composite is gone, or an external object whose managed
// resource is. It decides what is recorded of these, and how one is given to another
// composite, or released for good.
//
// Its files:
//   - ending.go: fate of the external object of a deleted managed resource ([EndingOf]); its name, ProviderConfig and identifiers
//   - record.go: the record of an orphaned external object, in a Secret ([NewRecord], [ReadRecord]); the one for a replaced object
//   - adoption.go: a managed resource made part of another XR ([Adopt]); reasons against it
//   - release.go: release from owners that are gone ([Release]), orphaning ([KeepExternal]), removal of a gone provider's finalizer
//   - patch.go: the resourceVersion in all these patches
package orphan
