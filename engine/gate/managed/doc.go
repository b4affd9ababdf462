// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managed says what a managed resource shows: whether its external object was made, whether a change of it has landed,
// what drifted, which object it stands for, and whether that is gone; and which of its allowances a gate still has to
// serve. Nothing is planned here.
//
// Its files:
//   - resource.go: kausality.io/gate ([ParseRecord]); current and widest management policies ([Widest]), those of a closed gate;
//     orphaning; unknown annotations
//   - serving.go: actions of an allowance that have not served yet ([Resource.Remaining]); Delete for deletions only;
//     edits stored while Kausality was not asked
//   - landed.go: whether an allowed change has landed ([Resource.Landed]): Synced, async operations, settle time
//   - external.go: the part of that in status.atProvider: comparison with spec.forProvider ([Differing]), and the fields of the allowed
//     change
//   - terms.go: settle, maxOpen, whenOverdue and closeWhen of an open gate ([Resource.Terms]); its allowances ([UnderWay])
//   - wait.go: typed reasons of a gate that stays open ([Wait], [Lack])
//   - made.go: external object made by the provider, or there before ([Made], [Existing]); first Create, then Update
//   - drift.go: changes of the external object outside Crossplane ([Drift]), as held changes ([DriftEntries]); no Update meanwhile
//   - gone.go: external object deleted or replaced outside Crossplane ([Lost], [ReplacedOutside])
//   - identity.go: another external object by a new ProviderConfig, external name or place ([Resource.Replaced]); the orphaned one
//   - keeps.go: external object kept despite an allowed deletion ([Kept]); deletionPolicy, the provider's finalizer ([NeedsProvider])
//   - ungated.go: no gate: provider without management policies, or mode Audit ([Ungated], [Free]); the gate afterwards
package managed
