// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission builds what has the API server ask Kausality: webhook
// configurations, and the ValidatingAdmissionPolicies, called guards, with their
// bindings. It is given the policies, windows and Enforcements, the kinds that are
// served, and how the webhook is reached, and returns objects. It reads and writes
// nothing.
//
// Its files:
//   - webhooks.go: webhook configurations ([Options.Configurations]): failure policies, timeouts, exempt users and writes
//   - governedkind.go: kinds for the mutating webhook, with or without their deletion ([GovernedKinds])
//   - enforced.go: kinds under each Enforcement ([Covered]); its conditions for the API server itself
//   - rule.go: rules of webhooks and guards: groups, versions, resources, operations
//   - wanted.go: policies in force, windows and Enforcements, the input of all this ([Config])
//   - guards.go: guards of managed resources ([Options.Guards]): gate, record, unseen edits, deletion; "governed" as a CEL expression
//   - guardkept.go: guard of spec.deletionPolicy and of the external name of a managed resource
//   - usageguard.go: a guard and a webhook that keep a ProviderConfigUsage as long as its managed resource
//   - heldguard.go: guard of Kausality's conditions on Claims and XRs ([Options.HeldGuard])
//   - pendingguard.go: guard of PendingChanges: the manager as their only writer
//   - approvalguard.go: guard of ChangeApprovals: approver, spec, status, deletion
//   - bindguard.go: guard of AllowanceBindings: the verb bind on the policy
//   - definitionguard.go: guards of Kausality's CRDs against deletion
//   - parameterguard.go: guard of the CRDs of policy parameters
package admission
