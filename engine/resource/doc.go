// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource reads what decisions need from Kubernetes objects of any
// kind: who their parent is, how far their controller has come, and whether
// they are Crossplane's claims, composite or managed resources. It takes
// objects as decoded JSON, with numbers as int64 (from the API server) or
// float64 (from a composition function's request). It also trims objects for
// caches, and writes the state that the composition function reports on an XR.
//
// Its files:
//   - relation.go: parent of an object ([ParentOf]); whether it is a Claim, XR or managed resource ([IsManaged]), or of Kubernetes itself;
//     composed resources, and whether an XR refers to one
//   - claim.go: the Claim of an XR ([ClaimOf])
//   - progress.go: conditions, readiness, observed generation; until when an XR is built up ([ProgressOf]): kausality.io/initialized
//   - state.go: the function's report in a condition of the XR ([StateOf]), cut to size ([FormatState])
//   - restated.go: older conditions of an XR that Crossplane writes back ([KeepRestated])
//   - revision.go: CompositionRevisions; whether the function runs for an XR ([RunsFor])
//   - destroys.go: changes that destroy something ([Destroys])
//   - field.go: fields of decoded JSON ([Value]); generation, annotations; an object as a kubectl argument
//   - trim.go: fields of an object to keep in a cache ([Trim])
package resource
