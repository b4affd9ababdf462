// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApprovalDecision is what somebody decides about changes.
// +kubebuilder:validation:Enum=Approve;Reject;BreakGlass
type ApprovalDecision string

// Decisions.
const (
	// DecisionApprove lets changes through.
	DecisionApprove ApprovalDecision = "Approve"
	// DecisionReject has them held whoever else approves them, until it is deleted or its
	// user approves them.
	DecisionReject ApprovalDecision = "Reject"
	// DecisionBreakGlass lets changes through alone in an emergency: also what its user asks
	// for, what takes several people, and what somebody has rejected.
	DecisionBreakGlass ApprovalDecision = "BreakGlass"
)

// Approves reports whether a decision lets changes through.
func (d ApprovalDecision) Approves() bool { return d != DecisionReject }

const (
	// VerbApprove lets its user approve changes of objects of a resource, on the subresource
	// kausality.
	VerbApprove = "approve"
	// VerbApproveDestructive lets its user approve those that destroy something.
	VerbApproveDestructive = "approve-destructive"
	// VerbBreakGlass lets its user let changes through alone, on the subresource kausality.
	VerbBreakGlass = "break-glass"
	// VerbWithdraw lets its user delete ChangeApprovals of others before they end, on these.
	VerbWithdraw = "withdraw"
	// DefaultValidFor is for how long an approval may be used where it does not say.
	DefaultValidFor = 24 * time.Hour
	// MaxApprovalAge is how long a ChangeApproval stays.
	MaxApprovalAge = 30 * 24 * time.Hour
)

// ChangeApprovalSpec is what somebody decides about changes that are held.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec cannot be changed: make another ChangeApproval, or delete this one to withdraw it"
// +kubebuilder:validation:XValidation:rule="has(self.digest) || (has(self.changes) && size(self.changes) > 0)",message="one of digest and changes is required: what is approved has to be said"
// +kubebuilder:validation:XValidation:rule="!has(self.decision) || self.decision != 'BreakGlass' || (has(self.reason) && self.reason.trim().size() > 0)",message="reason is required where the decision is BreakGlass: say why it cannot wait for others"
type ChangeApprovalSpec struct {
	// PendingChange is the name of the PendingChange, in the same namespace, that lists the
	// changes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PendingChange string `json:"pendingChange"`

	// Digest of the whole list, status.digest of the PendingChange. With it, changes may be
	// left out: all that are listed are meant, and it is refused where the list is another
	// one by now.
	// +optional
	// +kubebuilder:validation:Pattern="^sha256:[0-9a-f]{64}$"
	Digest string `json:"digest,omitempty"`

	// Changes are the digests of the changes that are meant.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:Pattern="^sha256:[0-9a-f]{64}$"
	Changes []string `json:"changes,omitempty"`

	// Decision about them.
	// +kubebuilder:default=Approve
	// +optional
	Decision ApprovalDecision `json:"decision,omitempty"`

	// Reason for it, such as a ticket.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// ValidFor is for how long after it is made it may be used, at most 30 days.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="must be between 1s and 720h"
	ValidFor *metav1.Duration `json:"validFor,omitempty"`

	// Approver is who made it. The webhook fills it in; nobody can write another one.
	// +optional
	Approver *Approver `json:"approver,omitempty"`
}

// Approver is a user, as the API server knows them.
type Approver struct {
	// Username of the user.
	// +kubebuilder:validation:MaxLength=1024
	Username string `json:"username"`
	// UID of the user, where the API server knows one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	UID string `json:"uid,omitempty"`
	// Groups the user was in.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=512
	Groups []string `json:"groups,omitempty"`
	// Extra is what else the authenticator said of the user.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Extra map[string]ExtraValue `json:"extra,omitempty"`
}

// ExtraValue is what an authenticator says of a user under one key.
// +kubebuilder:validation:MaxItems=64
// +kubebuilder:validation:items:MaxLength=1024
type ExtraValue []string

// ApprovalState is how far an approval of one change is.
type ApprovalState string

// States of an approval.
const (
	// ApprovalStateWaiting means that more approvals are needed.
	ApprovalStateWaiting ApprovalState = "Waiting"
	// ApprovalStateGranted means that the change may be made, once.
	ApprovalStateGranted ApprovalState = "Granted"
	// ApprovalStateApplied means that it was made.
	ApprovalStateApplied ApprovalState = "Applied"
	// ApprovalStateSuperseded means that nothing asks for the change any more, or not when
	// the approval was made: it grants nothing, ever.
	ApprovalStateSuperseded ApprovalState = "Superseded"
	// ApprovalStateExpired means that it was not used in time.
	ApprovalStateExpired ApprovalState = "Expired"
	// ApprovalStateNotAllowed means that its user may not approve it.
	ApprovalStateNotAllowed ApprovalState = "NotAllowed"
	// ApprovalStateRejected means that it is a rejection that stands, or that there is one.
	ApprovalStateRejected ApprovalState = "Rejected"
)

// Final reports whether a state is one that does not change.
func (s ApprovalState) Final() bool {
	return s == ApprovalStateApplied || s == ApprovalStateSuperseded || s == ApprovalStateExpired
}

// ChangeDecision is how far a ChangeApproval is about one change.
type ChangeDecision struct {
	// Digest of the change.
	// +kubebuilder:validation:MaxLength=128
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
	// State of it.
	State ApprovalState `json:"state"`
	// Since is when it came into the state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Message says more, for a person.
	// +optional
	Message string `json:"message,omitempty"`
}

// ChangeApprovalStatus is what became of a ChangeApproval. Only Kausality's manager writes it.
type ChangeApprovalStatus struct {
	// Changes are the changes that are meant, and how far each is.
	// +optional
	// +listType=map
	// +listMapKey=digest
	// +kubebuilder:validation:MaxItems=100
	Changes []ChangeDecision `json:"changes,omitempty"`
	// Conditions: Applied, with the state of the least of the changes as its reason.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ChangeApproval lets changes through that are held, each once and to the very value that was
// seen, or rejects them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=cha,categories=kausality
// +kubebuilder:printcolumn:name="Pending Change",type=string,JSONPath=".spec.pendingChange"
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=".spec.decision"
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=".spec.approver.username"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.conditions[?(@.type=='Applied')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type ChangeApproval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is decided.
	Spec ChangeApprovalSpec `json:"spec"`
	// Status is what became of it.
	// +optional
	Status ChangeApprovalStatus `json:"status,omitempty"`
}

// ChangeApprovalList is a list of ChangeApproval.
//
// +kubebuilder:object:root=true
type ChangeApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ChangeApproval `json:"items"`
}
