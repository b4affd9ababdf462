// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the admission webhook: it translates between admission
// requests and the engine's decisions, with parents and policies from informer
// caches. The [Mutator] stamps and holds; the [Enforcer] refuses, by what would
// be stored in the end; the [Validator] checks our own kinds. The [Approver] checks new
// ChangeApprovals, and [Usages] the deletion of ProviderConfigUsages. None of them keeps
// anything of a request, so that there may be any number of replicas.
//
// Its files:
//   - endpoint.go: an admission review over HTTP, decoded once ([Endpoint])
//   - judge.go: the input of a decision; from caches first, from the API server where they may be stale ([Judge.request], [Judge.look])
//   - mutator.go: /mutate: stamped and held changes ([Mutator.Handle])
//   - patch.go: the JSON patch of a decision: annotations, finalizers, managementPolicies, held fields; the same written directly
//     ([Judge.annotate])
//   - enforcer.go: /enforce: refusals, by the object as it would be stored ([Enforcer.Handle]); conflicts, for a retry
//   - deletion.go: a deletion, and the grant stored before it ([Judge.recordDeletion]); the warning
//     where that cannot be stored of a namespace
//   - namespace.go: the namespace of an object
//   - scale.go: kubectl scale and autoscalers, as a change of the replicas ([Judge.scaling])
//   - followup.go: the annotations of a scaled object, stored some moments after the request
//   - status.go: conditions of an XR, protected from an older state that Crossplane writes again
//   - validate.go: /validate: wrong fields of AllowancePolicies, AllowanceBindings, UpgradeAllowances and Enforcements
//   - approver.go: /mutate-changeapproval: approver and approved changes of a new ChangeApproval ([Approver.Handle])
//   - reviewer.go: users with permission to approve; also for the manager, at the use of an approval ([Reviewer.MayDecide])
//   - usage.go: /validate-usage: deletions of ProviderConfigUsages, refused while the provider needs them
//   - permission.go: SubjectAccessReviews, remembered for seconds ([NewAuthorizer], [NewPromptAuthorizer])
//   - limit.go: the time limit of one decision for questions to the API server, two seconds in all
//   - failure.go: errors and panics: the request is refused, or admitted with a warning ([Judge.failed])
//   - report.go: log and events of held and refused changes, and refusals for PendingChanges ([Judge.report])
//   - audit.go: annotations for the audit log of the API server, and the status details of a refusal ([audit], [details])
//   - warning.go: the limit of number and length of warnings
//   - metrics.go: metrics, with the end of the certificate ([NewMetrics])
//   - client.go: client certificates of the API server, where nobody else may ask ([Clients])
//   - heartbeat.go: the heartbeat Lease of the webhook, and by it the metric of the age of the caches ([Heartbeat])
package webhook

// Who deletes a namespace is written down on it before it goes.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
