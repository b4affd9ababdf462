// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Phase says how far an XR is.
type Phase string

// Phases.
const (
	// PhaseInitializing is that of an XR that has never settled.
	PhaseInitializing Phase = "Initializing"
	// PhaseProgressing is that of an XR with an allowed change under way.
	PhaseProgressing Phase = "Progressing"
	// PhaseSettled is that of an XR of which every allowed change has arrived.
	PhaseSettled Phase = "Settled"
	// PhaseOverdue is that of an XR that was ready for too long without having settled. It counts as settled.
	PhaseOverdue Phase = "Overdue"
)

// Settled is up to where an XR has settled.
//
// +kubebuilder:object:generate=false
type Settled struct {
	// Generation of the XR; 0 for none.
	Generation int64 `json:"generation,omitempty"`
	// Request is the last one within the generation; 0 for none.
	Request int64 `json:"request,omitempty"`
}

// Progress says how far a composition function has come with an XR.
//
// +kubebuilder:object:generate=false
type Progress struct {
	// Phase of the XR.
	Phase Phase `json:"phase"`
	// Generation of the XR that this is about. Crossplane may have its function run once more with an
	// XR of before, which it has in its cache.
	Generation int64 `json:"generation,omitempty"`
	// Request is the last one within the generation; 0 for none.
	Request int64 `json:"request,omitempty"`
	// Settled is the greatest generation, and request within it, that has settled.
	Settled Settled `json:"settled,omitzero"`
	// Status is a hash of the status that the pipeline desired last, and Idle in how many runs on end that was
	// another one though nothing resulted from it.
	Status string `json:"status,omitempty"`
	Idle   int    `json:"idle,omitempty"`
}

// Initialized is [AnnotationInitialized], as compact JSON. It outlasts [State], which Crossplane takes away
// where a run of the pipeline fails.
//
// +kubebuilder:object:generate=false
type Initialized struct {
	// V is [RecordVersion].
	V int `json:"v"`
	// Building is true of an XR from before it composes something until it has settled for the first time.
	Building bool `json:"building,omitempty"`
	// Settled is the greatest generation, and request within it, that is known to have settled; of an XR
	// whose composition function says so.
	Settled Settled `json:"settled,omitzero"`
}

// RecordVersion is the version of what Kausality records on objects. A record of another one is not read.
const RecordVersion = 1

// State is the message of the condition [ConditionState] of an XR, as compact JSON
// of at most [MaxStateBytes].
//
// +kubebuilder:object:generate=false
type State struct {
	// V is [RecordVersion].
	V int `json:"v"`
	// Progress says how far the XR is. It stands first: most readers read no further.
	Progress Progress `json:"progress"`
	// News is a hash of what was last worth an event: what is held, left to others, or to be corrected.
	News string `json:"news,omitempty"`
	// Revision of the Composition when nothing was held last that it asked for.
	Revision string `json:"revision,omitempty"`
	// Ran is the revision of the Composition that the XR named when the function ran last; empty where it is Revision.
	Ran string `json:"ran,omitempty"`
	// Spec stands for the spec of the XR when it was known last who had made it so, and SpecGeneration is
	// its generation then.
	Spec           string `json:"spec,omitempty"`
	SpecGeneration int64  `json:"specGeneration,omitempty"`
	// Fields are hashes of the fields of the XR's spec, of four bytes each, in order, as base64.
	Fields string `json:"fields,omitempty"`
	// Unseen is true where an edit of the XR was stored while the webhook was not asked, and something is
	// held that may follow from it: nobody knows whose it is.
	Unseen bool `json:"unseen,omitempty"`
	// Changes that are held, in order.
	Changes []HeldChange `json:"changes,omitempty"`
	// More is how many did not fit.
	More int `json:"more,omitempty"`
	// Passed are changes that nothing allows and that mode Audit let pass, in order.
	Passed []HeldChange `json:"passed,omitempty"`
	// PassedMore is how many of them did not fit.
	PassedMore int `json:"passedMore,omitempty"`
	// Approvals are the allowances of approvals that the XR carries, and how far they are.
	Approvals []ApprovalUse `json:"approvals,omitempty"`
	// Unsteady counts, by what they are of, changes of which the value was another one in
	// the last run, without another generation.
	Unsteady map[string]int `json:"unsteady,omitempty"`
	// Made are digests of what was last let through of each composed resource, as base64, see engine/wish.
	Made string `json:"made,omitempty"`
	// Again says, by the name of a composed resource, how often it was created again.
	Again map[string]Repairs `json:"again,omitempty"`
}

// Repairs says how often Crossplane has put back what somebody changes or deletes by hand, again and again.
//
// +kubebuilder:object:generate=false
type Repairs struct {
	// Count of them.
	Count int `json:"n"`
	// First and Last are when, in seconds of Unix time.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Seen is true of what is created again once it was seen.
	Seen bool `json:"seen,omitempty"`
	// Of is the digest of what is created again, on that alone.
	Of string `json:"of,omitempty"`
}

// MaxRepairs is how often what somebody has changed by hand is repaired, before it is theirs.
const MaxRepairs = 4

// ApprovalUseState is how far the allowance of an approval is.
type ApprovalUseState string

// States of an allowance of an approval.
const (
	// ApprovalApplying means that the change is let through, and was not seen yet.
	ApprovalApplying ApprovalUseState = "Applying"
	// ApprovalUsed means that the change was seen to have been made.
	ApprovalUsed ApprovalUseState = "Used"
	// ApprovalWaiting means that the change is still held, for another reason.
	ApprovalWaiting ApprovalUseState = "Waiting"
	// ApprovalAbsent means that nothing asks for the change.
	ApprovalAbsent ApprovalUseState = "Absent"
)

// ApprovalUse says how far the allowance of an approval is.
//
// +kubebuilder:object:generate=false
type ApprovalUse struct {
	// Approval is [Allowance.Approval].
	Approval string `json:"approval"`
	// Digest of the change.
	Digest string `json:"digest"`
	// State of it.
	State ApprovalUseState `json:"state"`
}

// ConditionState is on XRs alone: a [State], for Kausality itself. It is false where
// something is held.
const ConditionState = "KausalityState"

const (
	// MaxStateBytes is the most bytes of the message of [ConditionState], as the API
	// server takes of a condition.
	MaxStateBytes = 32 * 1024
	// MaxUnsteady is in how many runs in a row a change may ask for another value, of one
	// generation, before it is unstable.
	MaxUnsteady = 5
)
