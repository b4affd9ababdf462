// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletion has objects wait for Kausality before they are gone. A parent
// waits until what its deletion allows is written into what it owns (Owners), a
// managed resource until what it leaves is recorded in a Secret (Leftovers), and
// objects from before the manager started are found (Adoption). It reads objects live
// and writes finalizers, annotations, Secrets and events. Owners report to Leftovers,
// which know nothing of Owners.
package deletion
