// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PendingChangeSpec names the object that people edit.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec cannot be changed"
type PendingChangeSpec struct {
	// ObjectRef is the object below which something is held: a Claim, an XR without one, or
	// another object without a parent.
	ObjectRef ObjectReference `json:"objectRef"`
}

const (
	// MaxPendingChanges is how many changes a PendingChange lists; more are counted.
	MaxPendingChanges = 100
	// MaxPendingRefused is how many refusals it lists.
	MaxPendingRefused = 32
	// MaxPendingApprovals is how many approvals it lists, the newest.
	MaxPendingApprovals = 100
)

// Conditions of a PendingChange.
const (
	// ConditionApproved is true where every change that is listed is approved.
	ConditionApproved = "Approved"
	// ConditionApplied is true once nothing is held, and all that was approved was
	// seen to have been made.
	ConditionApplied = "Applied"
	// ConditionCurrent is false where the list is from before the pipeline failed.
	ConditionCurrent = "Current"
)

// Reasons of its conditions.
const (
	// ReasonWaiting means that a decision is waited for, or that what is approved is made.
	ReasonWaiting = "Waiting"
	// ReasonApproved means that all is approved.
	ReasonApproved = "Approved"
	// ReasonRejected means that somebody has rejected a change.
	ReasonRejected = "Rejected"
	// ReasonUnstable means that a change asks for another value each time.
	ReasonUnstable = "Unstable"
	// ReasonApplied means that what was approved is made.
	ReasonApplied = "Applied"
	// ReasonTakenBack means that the changes are no longer desired.
	ReasonTakenBack = "TakenBack"
	// ReasonCurrent means that the list is of now.
	ReasonCurrent = "Current"
	// ReasonPipelineFailed means that the list is of before the pipeline failed.
	ReasonPipelineFailed = "PipelineFailed"
)

// PendingChangeStatus is what is held. Only Kausality's manager writes it.
type PendingChangeStatus struct {
	// Digest of the changes' digests, in order: which version of the list somebody saw.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Total is how many changes are held, with those that are not listed.
	// +optional
	Total int32 `json:"total,omitempty"`
	// Destroys is how many of those that are listed destroy something.
	// +optional
	Destroys int32 `json:"destroys,omitempty"`
	// Requesters are the users who ask for the changes, as far as they are known; unknown
	// stands for an edit that was stored while nobody could see whose it is.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Requesters []string `json:"requesters,omitempty"`
	// Required is how many people have to approve each change.
	// +optional
	Required int32 `json:"required,omitempty"`
	// Changes that are held: those that destroy something first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Changes []HeldChange `json:"changes,omitempty"`
	// Refused are writes that were refused and would follow from an edit of this object that
	// nobody allowed. Nothing of them is stored: what is approved is the edit, see Changes.
	// +optional
	// +listType=map
	// +listMapKey=digest
	// +kubebuilder:validation:MaxItems=32
	Refused []RefusedChange `json:"refused,omitempty"`
	// Approvals that are about changes of this object, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Approvals []PendingApproval `json:"approvals,omitempty"`
	// FinishedAt is when nothing was held any more, and nothing approved was under way; it is
	// deleted an hour later.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Conditions: Approved with reason Approved, Waiting, Rejected or Unstable, Applied with
	// reason Applied, Waiting or TakenBack, and Current with reason Current or PipelineFailed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RefusedChange is a write that was refused because nobody allowed what it follows from.
type RefusedChange struct {
	// Digest stands for exactly this write.
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest"`
	// Ref is the object that the write was about.
	Ref ObjectReference `json:"ref"`
	// Field that was to be changed, or create or delete.
	Field string `json:"field"`
	// From is the value kept, as text, cut where long, and To the one asked for.
	// +optional
	From string `json:"from,omitempty"`
	// +optional
	To string `json:"to,omitempty"`
	// User whose request was refused.
	User string `json:"user"`
	// Message says why.
	Message string `json:"message"`
	// Destroys is true where something would be destroyed with it.
	// +optional
	Destroys bool `json:"destroys,omitempty"`
	// ParentGeneration is the generation of this object that it would follow from.
	// +optional
	ParentGeneration int64 `json:"parentGeneration,omitempty"`
	// Since is when it was refused first, and Last when that was seen last, to some minutes.
	Since metav1.Time `json:"since"`
	Last  metav1.Time `json:"last"`
}

// PendingApproval is what a ChangeApproval is to one change.
type PendingApproval struct {
	// Name of the ChangeApproval.
	Name string `json:"name"`
	// Digest of the change.
	Digest string `json:"digest"`
	// Ref is the object that the change is of; absent where the change was never seen held.
	// +optional
	Ref ObjectReference `json:"ref,omitzero"`
	// Parent is the object from whose state the change follows, see [HeldChange.Parent].
	// +optional
	Parent *ObjectReference `json:"parent,omitempty"`
	// Field of the change, or create or delete.
	// +optional
	Field string `json:"field,omitempty"`
	// User who approved or rejected it.
	User string `json:"user"`
	// Decision of theirs.
	// +optional
	Decision ApprovalDecision `json:"decision,omitempty"`
	// State of it.
	State ApprovalState `json:"state"`
	// Message says more, for a person.
	// +optional
	Message string `json:"message,omitempty"`
}

// PendingChange lists what is held below one object that people edit, such as a Claim. Its
// status is all there is to it, and only Kausality's manager writes that.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=pch,categories=kausality
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=".spec.objectRef.kind"
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=".spec.objectRef.name"
// +kubebuilder:printcolumn:name="Changes",type=integer,JSONPath=".status.total"
// +kubebuilder:printcolumn:name="Destroys",type=integer,JSONPath=".status.destroys"
// +kubebuilder:printcolumn:name="Requester",type=string,JSONPath=".status.requesters[*]"
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=".status.conditions[?(@.type=='Approved')].reason"
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=".status.conditions[?(@.type=='Applied')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type PendingChange struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec names the object.
	Spec PendingChangeSpec `json:"spec"`
	// Status is what is held.
	// +optional
	Status PendingChangeStatus `json:"status,omitempty"`
}

// PendingChangeList is a list of PendingChange.
//
// +kubebuilder:object:root=true
type PendingChangeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PendingChange `json:"items"`
}
