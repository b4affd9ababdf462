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

	// Selector limits the window to children with these labels. A window that
	// allows External actions only opens by itself, once each, the gates of the
	// managed resources that it selects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Namespaces limits the window to children in these namespaces; it leaves
	// out cluster-scoped ones.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Namespaces []string `json:"namespaces,omitempty"`

	// ActivateWhen keeps the window inactive until the new logic runs, and
	// whenever it does not.
	// +optional
	ActivateWhen *ActivateWhen `json:"activateWhen,omitempty"`

	// Suspend prevents the window from allowing anything while it is true, whatever
	// its time is. What it has allowed before goes on.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// OncePerObject applies the window to every object once at most: not to one
	// that names the window's UID in kausality.io/record.
	// +optional
	OncePerObject bool `json:"oncePerObject,omitempty"`
}

// ActivateWhen says how it is known that the new logic runs. Exactly one way.
// +kubebuilder:validation:XValidation:rule="has(self.podSelector) != has(self.controllerRef)",message="exactly one of podSelector and controllerRef is required"
// +kubebuilder:validation:XValidation:rule="has(self.podSelector) == has(self.image)",message="image goes with podSelector"
type ActivateWhen struct {
	// PodSelector selects the pods of the controller. The window is active
	// only while there is at least one, all are Ready and all run Image. Pods
	// that have ended do not count; of one that is being deleted only what it
	// runs does, until it is gone.
	// +optional
	PodSelector *PodSelector `json:"podSelector,omitempty"`

	// Image that the pods must run, in any of their containers: exactly as
	// written in the pod, or as a digest that the node reports to run.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// ControllerRef names a workload whose status.observedGeneration must have
	// come to a generation. Pods of an older one may still run.
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

// Conditions of windows beside Ready.
const (
	// ConditionActive is true while the window is in force; status.active and
	// status.reason say the same.
	ConditionActive = "Active"
	// ConditionStarted is true once the window has been active.
	ConditionStarted = "Started"
)

// Reasons of [ConditionActive], and of [ConditionStarted], whose reason is its type. A window that does not validate is not active for
// the reason [ReasonInvalid].
const (
	// ReasonActive means that the window is in force.
	ReasonActive = "Active"
	// ReasonNotStarted means that validFrom is not reached.
	ReasonNotStarted = "NotStarted"
	// ReasonEnded means that validUntil is reached.
	ReasonEnded = "Ended"
	// ReasonSuspended means that spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonNotObserved means that the manager cannot read what activateWhen
	// names.
	ReasonNotObserved = "NotObserved"
	// ReasonNoPods means that podSelector selects no pod that runs.
	ReasonNoPods = "NoPods"
	// ReasonPodNotReady means that a pod is not ready.
	ReasonPodNotReady = "PodNotReady"
	// ReasonPodRunsAnotherImage means that a pod does not run the image.
	ReasonPodRunsAnotherImage = "PodRunsAnotherImage"
	// ReasonControllerNotFound means that there is no such workload, or that it
	// is being deleted.
	ReasonControllerNotFound = "ControllerNotFound"
	// ReasonControllerBehind means that the workload's controller has not
	// observed minGeneration.
	ReasonControllerBehind = "ControllerBehind"
)

// UpgradeAllowanceStatus is what the manager found out about a window.
type UpgradeAllowanceStatus struct {
	// ObservedGeneration is the generation the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Active is true while the window is in force: its time has come and is not
	// over, it is not suspended, and activateWhen is met.
	// +optional
	// +kubebuilder:default=false
	Active bool `json:"active"` // Written when false too, for it is a column.
	// Reason says why it is or is not active: the reason of condition Active.
	// +optional
	Reason string `json:"reason,omitempty"`
	// TypeChecking holds warnings: paths of allow that no object of the kind has.
	// They never keep the window from being in force.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	TypeChecking []TypeCheckingWarning `json:"typeChecking,omitempty"`
	// Conditions: Ready with reason InForce, Invalid, KindUnknown or RightsMissing;
	// Active with the reasons of windows; Started, which is set once.
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
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.reason"
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
