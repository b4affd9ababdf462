// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpgradeAllowanceSpec is a window in which one service account may make
// mutations that no parent allows, because its logic changed.
// +kubebuilder:validation:XValidation:rule="self.validFrom < self.validUntil",message="validUntil must be after validFrom",fieldPath=".validUntil",reason=FieldValueInvalid
type UpgradeAllowanceSpec struct {
	// ServiceAccount is the user name of the service account:
	// system:serviceaccount:NAMESPACE:NAME.
	// +kubebuilder:validation:Pattern="^system:serviceaccount:[a-z0-9.-]+:[a-z0-9.-]+$"
	// +kubebuilder:validation:MaxLength=512
	ServiceAccount string `json:"serviceAccount"`

	// ValidFrom is when the window begins, inclusive.
	ValidFrom metav1.Time `json:"validFrom"`

	// ValidUntil is when the window ends, exclusive.
	ValidUntil metav1.Time `json:"validUntil"`

	// Allow lists the mutations that the window allows.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Allow []Permission `json:"allow"`

	// Selector limits the window to children with these labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Namespaces limits the window to children in these namespaces; it leaves
	// out cluster-scoped ones.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Namespaces []string `json:"namespaces,omitempty"`

	// ActivateWhen keeps the window inactive until the new logic runs.
	// +optional
	ActivateWhen *ActivateWhen `json:"activateWhen,omitempty"`

	// OncePerObject applies the window to every object once at most.
	// +optional
	OncePerObject bool `json:"oncePerObject,omitempty"`
}

// ActivateWhen says how to tell that the new logic runs. Exactly one way.
// +kubebuilder:validation:XValidation:rule="has(self.podSelector) != has(self.controllerRef)",message="exactly one of podSelector and controllerRef is required"
// +kubebuilder:validation:XValidation:rule="has(self.podSelector) == has(self.image)",message="image goes with podSelector"
type ActivateWhen struct {
	// PodSelector selects the pods of the controller. The window is active
	// only while there is at least one, all are Ready and all run Image.
	// +optional
	PodSelector *PodSelector `json:"podSelector,omitempty"`

	// Image that the pods must run.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// ControllerRef names a workload that must have observed a generation.
	// +optional
	ControllerRef *ControllerRef `json:"controllerRef,omitempty"`
}

// PodSelector selects pods of one namespace.
type PodSelector struct {
	// Namespace of the pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Labels that the pods carry.
	// +kubebuilder:validation:MinProperties=1
	Labels map[string]string `json:"labels"`
}

// ControllerRef names a workload.
type ControllerRef struct {
	// Kind of the workload.
	// +kubebuilder:validation:Enum=Deployment;StatefulSet;DaemonSet
	Kind string `json:"kind"`
	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// MinGeneration that its controller must have observed.
	// +kubebuilder:validation:Minimum=1
	MinGeneration int64 `json:"minGeneration"`
}

// UpgradeAllowanceStatus is what the manager found out about a window.
type UpgradeAllowanceStatus struct {
	// ObservedGeneration is the generation the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Active is true while activateWhen is met; it is not about time.
	// +optional
	Active bool `json:"active,omitempty"`
	// Reason says why it is or is not active.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Uses counts the mutations that the window allowed.
	// +optional
	Uses int64 `json:"uses,omitempty"`
	// Conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// UpgradeAllowance is a time-bounded window for a change of logic.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ua,categories=kausality
// +kubebuilder:printcolumn:name="ServiceAccount",type=string,JSONPath=".spec.serviceAccount"
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=".spec.validFrom"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=".spec.validUntil"
// +kubebuilder:printcolumn:name="Active",type=boolean,JSONPath=".status.active"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type UpgradeAllowance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the window asks for.
	Spec UpgradeAllowanceSpec `json:"spec"`
	// Status is what was found out about it.
	// +optional
	Status UpgradeAllowanceStatus `json:"status,omitempty"`
}

// UpgradeAllowanceList is a list of UpgradeAllowance.
//
// +kubebuilder:object:root=true
type UpgradeAllowanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []UpgradeAllowance `json:"items"`
}
