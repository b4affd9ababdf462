// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gatecontroller holds the reconcilers: the gates of managed
// resources, the allowances of parents, the status of upgrade windows, and the
// webhook configurations and guards that follow from the policies in force. What
// they do with an object the engine decides.
package gatecontroller

// Which kinds are governed policies say, and parents and what keeps them may be of
// any kind; roles know no exceptions. What a wildcard gives no other rule repeats:
// our own kinds, statuses and namespaces are among it. To make something by
// server-side apply takes create as well.
// +kubebuilder:rbac:groups=*,resources=*,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,verbs=create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=create;delete
// +kubebuilder:rbac:groups="",namespace=kausality-system,resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kausality-system,resources=leases,verbs=create;update
