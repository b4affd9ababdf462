// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectReference names one object.
type ObjectReference struct {
	// APIVersion of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Namespace of the object; empty for a cluster-scoped one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name of the object; empty for one that has none yet.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// UID of the object; empty for one that is not there yet.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// CauseType is why somebody or something asks for a change that is held.
// +kubebuilder:validation:Enum=Edit;Composition;Drift;Pipeline
type CauseType string

// Causes.
const (
	// CauseEdit is that a user changed the object that people edit.
	CauseEdit CauseType = "Edit"
	// CauseComposition is that the XR has another revision of its Composition than when it
	// last had nothing held.
	CauseComposition CauseType = "Composition"
	// CauseDrift is that somebody changed by hand what a Composition composes, or outside of Crossplane its external object.
	CauseDrift CauseType = "Drift"
	// CausePipeline is all else: a function wishes something else than before, such as
	// because of another version of it or of what it reads.
	CausePipeline CauseType = "Pipeline"
)

// Cause says who or what asks for a change.
type Cause struct {
	// Type of it.
	Type CauseType `json:"type"`
	// User who asks; empty where there is none or none is known.
	// +optional
	User string `json:"user,omitempty"`
	// Since is when the change was first held.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Revision of the Composition that asks for it.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Functions are updates of functions that its pipeline runs, by the names of their FunctionRevisions, the
	// newest first: those of the day before the change was first held. One of them may ask for it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Functions []string `json:"functions,omitempty"`
}

// HeldChange is one change that was asked for, that nothing allows and from which nothing follows: it is held, or stored
// where people edit the object.
type HeldChange struct {
	// Ref is the object that keeps its value. One that is to be created has no UID. In an annotation it is left out: it is
	// the object that has the annotation.
	// +required
	Ref ObjectReference `json:"ref,omitzero"`
	// ComposedResource is the name of the object in its Composition; empty for other objects.
	// +optional
	ComposedResource string `json:"composedResource,omitempty"`
	// Parent is the object from whose state the change follows. In the list of one XR it is
	// left out: it is that XR.
	// +optional
	Parent *ObjectReference `json:"parent,omitempty"`
	// Field that keeps its value, or create or delete. In the last entry of an annotation it may be the number of changes
	// left out: (12 more).
	Field string `json:"field"`
	// Place tells fields apart that have one path, where they are in elements of a list that has keys: a hash of these.
	// +optional
	Place string `json:"place,omitempty"`
	// From is the value kept, or last allowed, as text, cut where long. Empty means absent; (masked)
	// stands for a credential.
	// +optional
	From string `json:"from,omitempty"`
	// To is the value asked for, as From. It is left out where that is stored.
	// +optional
	To string `json:"to,omitempty"`
	// Digest stands for exactly this change of this object to exactly this value:
	// sha256: and 64 hexadecimal digits. Where it is empty nobody can approve the change.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Masked is true where the digest does not say the value, for that is hidden: what is
	// approved is any value of the field, once. Of what is stored it is true where From is not recorded.
	// +optional
	Masked bool `json:"masked,omitempty"`
	// Cause of the change.
	// +optional
	Cause *Cause `json:"cause,omitempty"`
	// At is the last change of the parent when this one was first held, as GENERATION.REQUEST. No later change of the
	// parent lets it through, but one of what it is held because of.
	// +optional
	At string `json:"at,omitempty"`
	// Follows are the external actions that follow, such as Update.
	// +optional
	// +listType=atomic
	Follows []string `json:"follows,omitempty"`
	// Destroys is true where something is destroyed with it.
	// +optional
	Destroys bool `json:"destroys,omitempty"`
	// Missing says what it would take by policy, cut short where long.
	// +optional
	Missing string `json:"missing,omitempty"`
	// Unstable is true where what is asked for is another value each time, so that it
	// cannot be approved.
	// +optional
	Unstable bool `json:"unstable,omitempty"`
	// Stored is set where the value asked for is stored, though nobody allowed that.
	// +optional
	Stored *StoredChange `json:"stored,omitempty"`
}

// StoredChange says of a change that is stored by whom, and where in the object.
type StoredChange struct {
	// Where is the field with the keys of elements in the place of indices, as JSON, where it is in a list whose elements
	// have keys.
	// +optional
	Where string `json:"where,omitempty"`
	// UID of the user, where the API server knows one.
	// +optional
	UID string `json:"uid,omitempty"`
	// Groups the user was in.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Groups []string `json:"groups,omitempty"`
	// From is the SHA-256 of the value last allowed, where that is cut short.
	// +optional
	From string `json:"from,omitempty"`
	// Approvals are how many people have to approve what follows: the most that any
	// policy about it asks for, whoever may initiate it by that. Absent where none does.
	// +optional
	Approvals int32 `json:"approvals,omitempty"`
}
