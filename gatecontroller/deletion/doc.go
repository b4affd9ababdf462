// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletion has objects wait for Kausality before they are gone. A parent
// waits until what its deletion allows is written into what it owns (Owners), a
// managed resource until what it leaves is recorded in a Secret (Leftovers), and
// objects from before the manager started are found (Adoption). It reads objects live
// and writes finalizers, annotations, Secrets and events. Owners report to Leftovers,
// which know nothing of Owners.
//
// Its files:
//   - owners.go: a parent: its finalizer, its wait, and the grants for its children ([Owners.EnsureFinalizer], [Owners.Release])
//   - follows.go: what the deletion of a parent gives a child, decided as a request of the garbage collector ([judge])
//   - unreferenced.go: the warning for a managed resource that its XR does not refer to any more
//   - leftovers.go: a managed resource: its finalizer, and the Secret and events for an orphan ([Leftovers.Release])
//   - notice.go: the events about orphans, each once
//   - adoption.go: the hourly search for our finalizer in all kinds, such as after a restore ([Adoption.Adopt])
package deletion
