// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package composition decides what a Composition may do to the resources it
// composes: it turns what a pipeline desires into what it may apply, with
// everything that is not allowed kept as observed. It also decides when
// Crossplane reverts a change by hand of a resource without a gate.
//
// Its files:
//   - request.go: what the function passes for one composed resource, and gets back ([Request], [Result])
//   - decide.go: create, update and deletion of a composed resource ([Decide]); what of it is held; what is still in progress;
//     a resource whose managedFields cannot be read
//   - composed.go: the composed resource, and what decisions about it depend on, as the other files pass it
//   - carry.go: kausality.io annotations and managementPolicies in desired state; a resource as it is, of the version that was
//     read ([composed.hold]); what Crossplane adds later
//   - wish.go: the record of desired state on the resource, its size limit, none for Secrets; fields left to a user or controller
//   - holding.go: a held change as listed for the gate controller: reference, digest, change by hand; differences of an external object
//     that existed before
//   - withheld.go: since when changes and creations are held, recorded on composed resources
//   - repair.go: the repair of what somebody changed or deleted by hand: which resources, how often, when again; why not; which
//     changes revert one by hand; what an XR remembers for it ([Remember])
//   - swap.go: another kind under the same name: no deletion before the new one is allowed
//   - renamed.go: another name in the Composition for the same object ([Others])
//   - successor.go: a removed resource whose external object another composed resource represents ([Successors])
//   - gatedin.go: a version of the kind without managementPolicies, held
//   - mode.go: managed resources in mode Audit: no gate
//   - restored.go: the first run for an XR ([First]); an XR restored from a backup ([Recorded])
package composition
