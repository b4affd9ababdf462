// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gatecontroller holds the reconcilers: the gates of managed
// resources, the allowances of parents, the status of upgrade windows, and the
// webhook configurations and guards that follow from the policies in force. What
// they do with an object the engine decides.
package gatecontroller

// +kubebuilder:rbac:groups=*,resources=*,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=kausality.io,resources=allowancepolicies/status;upgradeallowances/status;enforcements/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",namespace=kausality-system,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kausality-system,resources=leases,verbs=get;create;update
