// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gatecontroller sets up the controllers of the packages below: of the gates
// of managed resources and the allowances of parents, of the status of each policy,
// binding, window and Enforcement, of PendingChanges, ChangeApprovals and Reports, and of
// the webhook configurations and guards for all policies, windows and Enforcements. What they do with an object the engine decides.
//
// Its files:
//   - setup.go: all controllers, and how they are wired, for each option of the manager ([Setup])
//   - leading.go: the controllers of the leader: their start, and the end of all writes before the lease is free
//   - describe.go: the metrics alone, for the reference ([DescribeMetrics])
package gatecontroller

// What is standing: our own kinds, what it takes to find kinds, and what we keep, by
// name. To make something by server-side apply takes create as well, which knows
// names there, and only there. What the kinds take that policies and Enforcements are about comes from
// roles that are aggregated: see package engine/right.
// +kubebuilder:rbac:groups=kausality.io,resources=allowancepolicies;upgradeallowances,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=kausality.io,resources=enforcements,verbs=get;list;watch
// +kubebuilder:rbac:groups=kausality.io,resources=allowancebindings,verbs=list;watch
// +kubebuilder:rbac:groups=kausality.io,resources=allowancebindings/status;allowancepolicies/status;enforcements/status;upgradeallowances/status,verbs=patch
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=allowancebindings.kausality.io;allowancepolicies.kausality.io;changeapprovals.kausality.io;enforcements.kausality.io;pendingchanges.kausality.io;upgradeallowances.kausality.io,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositionrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups=pkg.crossplane.io,resources=functionrevisions,verbs=list
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=kausality,verbs=create;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies,resourceNames=kausality-gate-delete,verbs=get
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=kausality-gate-writer;kausality-gate-delete;kausality-usage-delete;kausality-bind;kausality-params;kausality-approval;kausality-pending;kausality-held;kausality-crd-allowancebindings;kausality-crd-allowancepolicies;kausality-crd-enforcements;kausality-crd-upgradeallowances,verbs=create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=kausality-system,resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kausality-system,resources=leases,verbs=get;list;watch;create;update
