// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval decides about ChangeApprovals: [Admit] about the creation of one, and [Compute] about those that there
// are. It plans which allowances the parents of held changes get because of them, and which are taken away again.
//
// Its files:
//   - admit.go: creation of a ChangeApproval: refusal, stored digests, warnings ([Admit])
//   - who.go: who may decide: RBAC verbs ([Asker.MayDecide]), service accounts, no requester ([SameEyes])
//   - plan.go: all writes for the ChangeApprovals of a PendingChange, but those being deleted, in order ([Compute]); allowances of
//     parents; intervals of the checks
//   - input.go: the basis of a plan ([Input]); the parents that count ([ParentRefs])
//   - change.go: all changes that are held, decided about or granted ([read])
//   - decide.go: outcome of one change ([decide]); no withdrawal of a change under way
//   - vote.go: the count of approvals and rejections of a held change ([count]); expiry
//   - held.go: outcome of a held change, and of one no longer held; how that is made certain ([notHeld])
//   - stage.go: progress of a granted change: waiting, applying, used ([change.stage]); live reads of objects
//   - allowance.go: allowances and trace hop from an approval, for the parent ([Allowances])
//   - status.go: status of each ChangeApproval; deletion of old ones
//   - summary.go: status.approvals, Approved and Applied of the PendingChange ([Plan.Complete])
//   - message.go: messages of these statuses
//   - edits.go: end of the recorded edits of a root after approvals ([EditsBefore])
package approval
