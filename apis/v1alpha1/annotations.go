// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotationPrefix starts every annotation that only Kausality may write.
const AnnotationPrefix = "kausality.io/"

// Annotations that Kausality writes on objects. Values are YAML on write; YAML
// and JSON are accepted on read.
const (
	// AnnotationAllowances is on parents and managed resources: a list of
	// [Allowance], the mutations that may follow from this object's state.
	AnnotationAllowances = AnnotationPrefix + "allowances"
	// AnnotationTrace is on every object whose change was allowed, and on roots from
	// their creation, whoever created them: a list of [TraceEntry], newest first, at most [MaxTraceEntries].
	AnnotationTrace = AnnotationPrefix + "trace"
	// AnnotationRecord is on objects that have used an allowance of which nothing else shows that, and on those that were
	// changed without a new generation: an [ObjectRecord].
	AnnotationRecord = AnnotationPrefix + "record"
	// AnnotationInitialized is on parents once they were seen ready, and on XRs from before they compose
	// something: an [Initialized].
	AnnotationInitialized = AnnotationPrefix + "initialized"
	// AnnotationGate is the gate's own record on managed resources, a
	// [GateRecord].
	AnnotationGate = AnnotationPrefix + "gate"
	// AnnotationDesiredPolicies is on managed resources: a [DesiredPolicies], the management
	// policies that the Composition asks for, and the function's mode where that is Audit.
	AnnotationDesiredPolicies = AnnotationPrefix + "desired-policies"
	// AnnotationLastUpgrade names the UpgradeAllowance last applied to a child.
	AnnotationLastUpgrade = AnnotationPrefix + "last-upgrade"
	// AnnotationHeld is on objects whose unallowed changes were held, or stored though nobody allowed them: a list of
	// [HeldChange]. The latter are of objects without a parent, such as Claims, XRs and Deployments, and of what an XR
	// composes without a gate; while there is one, windows grant nothing to what the object owns. It is absent when there
	// is neither. Its entries are as in a PendingChange, see its reference.
	AnnotationHeld = AnnotationPrefix + "held"
	// AnnotationWish is on composed resources: hashes of the last wish of their
	// Composition that was let through. What is stored often reads otherwise.
	AnnotationWish = AnnotationPrefix + "wish"
	// AnnotationApproved is on the object that a PendingChange is about: a list of
	// [ApprovedChange], oldest first, at most [MaxApproved], those that were made. A
	// ChangeApproval that is made again, of the same name, grants none of them.
	AnnotationApproved = AnnotationPrefix + "approved"
	// AnnotationRelease is the one that a person writes, on a managed resource
	// whose parent is gone: orphan ([ReleaseOrphan]) or alone ([ReleaseAlone]).
	AnnotationRelease = AnnotationPrefix + "release"
	// AnnotationManager is on the webhook configurations: a [ManagerRecord], who
	// keeps them.
	AnnotationManager = AnnotationPrefix + "manager"
)

// KnownAnnotations are the annotations under [AnnotationPrefix] of this version.
func KnownAnnotations() []string {
	return []string{
		AnnotationAllowances, AnnotationTrace, AnnotationRecord, AnnotationInitialized, AnnotationGate, AnnotationDesiredPolicies,
		AnnotationLastUpgrade, AnnotationHeld, AnnotationWish, AnnotationApproved, AnnotationRelease,
		AnnotationManager,
	}
}

// KnownAnnotation reports whether an annotation under [AnnotationPrefix] is one of this version.
func KnownAnnotation(key string) bool { return slices.Contains(KnownAnnotations(), key) }

// ReleaseOrphan is the value of AnnotationRelease that asks to leave the external
// object behind when the managed resource is deleted.
const ReleaseOrphan = "orphan"

// ReleaseAlone is the value of AnnotationRelease that the removal of Kausality
// leaves on what has lost its owner: it stays closed, however often the removal is
// run.
const ReleaseAlone = "alone"

// Finalizer is on parents that own gated resources: it blocks their deletion until what
// their deletion gives is written into those. It is on gated resources too: it
// blocks their deletion until it is recorded what they orphan.
const Finalizer = AnnotationPrefix + "deletion"

// Labels the manager maintains on policies and windows, by which a composition
// function asks for those that matter to it.
const (
	// LabelKindPrefix begins labels of AllowancePolicies, one for each kind whose changes
	// they match, by which functions ask for them: kind.kausality.io/KIND.
	LabelKindPrefix = "kind." + AnnotationPrefix
	// LabelKind is on AllowancePolicies of one kind: that kind, for functions that ask by
	// it.
	LabelKind = AnnotationPrefix + "kind"
	// LabelServiceAccount is on UpgradeAllowances: whose changes they allow, as
	// NAMESPACE.NAME.
	LabelServiceAccount = AnnotationPrefix + "service-account"
)

// Limits of what Kausality writes on one object.
const (
	// MaxTraceEntries is the most entries AnnotationTrace holds.
	MaxTraceEntries = 8
	// MaxWithheld is the most places at which changes of one object are held that are recorded by themselves; more are recorded
	// by what is above them.
	MaxWithheld = 256
	// MaxWindows is the most windows AnnotationRecord holds; the oldest are left out.
	MaxWindows = 16
	// MaxHeldEntries is the most entries of what is held that AnnotationHeld has; the last one is
	// a count of those that are left out.
	MaxHeldEntries = 64
	// MaxHeldBytes is the most bytes that these take; what does not fit is counted by the last entry.
	MaxHeldBytes = 16 * 1024
	// MaxStored is the most entries of what is stored that AnnotationHeld has; the last one then stands
	// for all that are left out.
	MaxStored = 64
	// MaxApproved is the most entries AnnotationApproved holds; the oldest are left out.
	MaxApproved = 64
	// MaxStoredGroups is the most groups of its user such an entry names.
	MaxStoredGroups = 16
	// MaxWishBytes is the most bytes AnnotationWish holds.
	MaxWishBytes = 32 * 1024
	// MaxWishesBytes is the most bytes AnnotationWish takes on all that one XR
	// composes.
	MaxWishesBytes = 512 * 1024
	// MaxAllowancesBytes is the most bytes AnnotationAllowances holds. An
	// object's annotations may take 256 KiB in all
	// (k8s.io/apimachinery/pkg/api/validation.TotalAnnotationSizeLimitB).
	MaxAllowancesBytes = 64 * 1024
)

// MaxUnobserved is how long an allowance to create or delete lasts where nothing
// shows when it has served: the kind reports no observed generation, or the change
// that gave it made none. It is as long as a gate may stay open by default.
const MaxUnobserved = time.Hour

// Pseudo-fields: they stand beside field paths in match.fields and mutations.
const (
	// MutationCreate is the creation of the whole object.
	MutationCreate = "create"
	// MutationDelete is the deletion of the whole object.
	MutationDelete = "delete"
)

// ConditionKausality is the condition the function sets on an XR and its
// Claim. Its message starts with "generation N: ", the XR's generation, for
// Crossplane gives such conditions no observedGeneration.
const ConditionKausality = "Kausality"

// Reasons of [ConditionKausality].
const (
	// ReasonAllowed means that nothing is held.
	ReasonAllowed = "Allowed"
	// ReasonHeld means that at least one change is held.
	ReasonHeld = "Held"
	// ReasonNotRun means that the function does not run for the XR any more.
	ReasonNotRun = "NotRun"
)

// Relation says how an allowance's target hangs together with its parent.
// +kubebuilder:validation:Enum=Child;External
type Relation string

// Relations.
const (
	// RelationChild is an object whose controller owner reference (or Claim
	// reference) names the parent.
	RelationChild Relation = "Child"
	// RelationExternal is the system behind a managed resource.
	RelationExternal Relation = "External"
)

// SourceType is what gave an allowance.
type SourceType string

// Types of sources.
const (
	// SourcePolicy is an AllowancePolicy, for a change of the object.
	SourcePolicy SourceType = "Policy"
	// SourceWindow is an UpgradeAllowance: for a change of the object that it allows, or by itself.
	SourceWindow SourceType = "Window"
	// SourceApproval is a ChangeApproval.
	SourceApproval SourceType = "Approval"
	// SourceDeletion is the deletion of the object, whatever allowed that.
	SourceDeletion SourceType = "Deletion"
	// SourceCreation is the parent of the object, which was never ready.
	SourceCreation SourceType = "Creation"
)

// AllowanceSource is what gave an allowance.
type AllowanceSource struct {
	// Type of the source.
	Type SourceType `json:"type"`
	// Name of the AllowancePolicy, UpgradeAllowance or ChangeApproval; of a Deletion, of what allowed that. Empty for none.
	Name string `json:"name,omitempty"`
	// Field of the object whose change it was given for, or create. Empty of a Deletion, and of what a window or an approval
	// gave by itself.
	Field string `json:"field,omitempty"`
	// Place is the field with hashes of the keys of elements in the place of their indices: spec.users.@b54d5f2e.role. Empty
	// where it leads through no element with a key.
	Place string `json:"place,omitempty"`
	// Also are other fields of the same change that gave it, each as Place where it has one; at most 16.
	Also []string `json:"also,omitempty"`
	// From is the [Allowance.ID] of the parent's deletion that a Deletion follows from.
	From string `json:"from,omitempty"`
}

// MaxAlso is the most other fields that are recorded of a change that gave an allowance.
const MaxAlso = 16

// Allowance is one entry of AnnotationAllowances: a mutation that may be made
// because of a change of the object that carries it. With relation External
// it names external actions in Mutations, otherwise a child's field path,
// create or delete in Mutation.
type Allowance struct {
	// APIGroup of the child. Empty means any group.
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the child.
	Kind string `json:"kind,omitempty"`
	// Relation of the target; empty means Child.
	Relation Relation `json:"relation,omitempty"`
	// Mutation is a field path of the child, create or delete.
	Mutation string `json:"mutation,omitempty"`
	// Mutations are external actions, such as Update.
	Mutations []string `json:"mutations,omitempty"`
	// Generation of the carrying object that caused the allowance.
	Generation int64 `json:"generation"`
	// ID of the change that caused it: GENERATION.REQUEST. Request is 0 for the change that made the generation, and
	// counts the allowed changes since then that made none, as one of metadata alone.
	ID string `json:"id"`
	// Initiator is the user that started the chain.
	Initiator string `json:"initiator"`
	// Policy is the AllowancePolicy that granted it. Empty for none.
	Policy string `json:"policy,omitempty"`
	// Source is what gave it.
	Source AllowanceSource `json:"source"`
	// Until is when it ends, of an allowance to create or delete of which nothing
	// else shows when it has served: it is [MaxUnobserved] from when it was given.
	Until *metav1.Time `json:"until,omitempty"`
	// Digest is the change that it is for, and no other, where a ChangeApproval gave it.
	// See [HeldChange.Digest].
	Digest string `json:"digest,omitempty"`
	// Approval is the UID of the ChangeApproval that gave it.
	Approval string `json:"approval,omitempty"`
	// Trace is the path from the initiator's change to this object, in order. It is for people.
	Trace []Hop `json:"trace,omitempty"`
	// Unknown are fields that this version does not know.
	Unknown Unknown `json:"-"`
}

// ObjectRecord is the value of AnnotationRecord, as JSON.
// +kubebuilder:object:generate=false
type ObjectRecord struct {
	// V is [RecordVersion].
	V int `json:"v"`
	// Request is the [Allowance.ID] of the last allowed change of the object that made no generation of its own.
	Request string `json:"request,omitempty"`
	// Used are allowances of the parent that the object has used, while the parent carries them.
	Used []Use `json:"used,omitempty"`
	// Withheld are the places of changes of the object that are held.
	Withheld []WithheldPlaces `json:"withheld,omitempty"`
	// Asked is who asked for them last.
	Asked Asker `json:"asked,omitzero"`
	// Windows are the UIDs of the UpgradeAllowances that changed the object, newest first, at most [MaxWindows].
	Windows []types.UID `json:"windows,omitempty"`
}

// Asker is a writer that asked for what is held. Others do not show that it is asked for no more.
// +kubebuilder:object:generate=false
type Asker struct {
	// By is a hash of the user and the field manager.
	By string `json:"by,omitempty"`
	// At is the [Allowance.ID] of the last change of the parent then.
	At string `json:"at,omitempty"`
}

// WithheldPlaces are the places of an object at which changes are held since one change of its parent. No allowance of a
// later one serves them.
// +kubebuilder:object:generate=false
type WithheldPlaces struct {
	// At is the [Allowance.ID] of the last change of the parent when they were first held.
	At string `json:"at"`
	// Of are the fields of the parent that had changed then, and had not settled, in the form of [AllowanceSource.Place] where they
	// have one. Who may changes one of them anew, and what follows from that serves the places.
	Of []string `json:"of,omitempty"`
	// Edited is true where it may follow from what somebody had stored who may not, and nobody had looked since: no allowance of
	// before serves it either.
	Edited bool `json:"edited,omitempty"`
	// Places are hashes of 8 bytes each of their paths, in base64.
	Places string `json:"places"`
}

// Use is that of an allowance.
// +kubebuilder:object:generate=false
type Use struct {
	// ID of the allowance.
	ID string `json:"id,omitempty"`
	// Field of its source.
	Field string `json:"field,omitempty"`
	// Approval and Digest of the allowance, where an approval gave it.
	Approval string `json:"approval,omitempty"`
	Digest   string `json:"digest,omitempty"`
}

// Hop is one object on the path from an initiator to an effect.
type Hop struct {
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object where it is not that of the object which carries the
	// annotation; empty for a cluster-scoped one there. Absent where they are the
	// same, and in traces that are older than this field.
	Namespace *string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// Generation the change produced.
	Generation int64 `json:"generation"`
	// Request counts the allowed changes that made no generation of their own, as
	// one of metadata alone, or any of a ConfigMap: it is 1 for the first of them
	// since the generation, and absent for the change that made it.
	Request int64 `json:"request,omitempty"`
	// Field that changed, with concrete indices, or create or delete.
	Field string `json:"field"`
	// Attestations are values captured from the object, by field path; (masked)
	// stands for a credential.
	Attestations map[string]string `json:"attestations,omitempty"`
	// Unknown are fields that this version does not know.
	Unknown Unknown `json:"-"`
}

// TraceEntry is one entry of AnnotationTrace: why a field is as it is.
type TraceEntry struct {
	// Field that changed, or create.
	Field string `json:"field"`
	// Place of it, as of [AllowanceSource.Place].
	Place string `json:"place,omitempty"`
	// Generation of this object that the change produced.
	Generation int64 `json:"generation"`
	// Initiator is the user that started the chain.
	Initiator string `json:"initiator"`
	// Trace is the path from the initiator's change to this object, in order.
	Trace []Hop `json:"trace,omitempty"`
	// By is who made the change in a window; empty for Crossplane, and without a window.
	By string `json:"by,omitempty"`
	// Repaired is when Crossplane put back what this change had made; nil where nobody had changed it since.
	Repaired *metav1.Time `json:"repaired,omitempty"`
	// Unknown are fields that this version does not know.
	Unknown Unknown `json:"-"`
}

// ApprovedChange is one entry of AnnotationApproved: a change that was made because of a
// ChangeApproval.
// +kubebuilder:object:generate=false
type ApprovedChange struct {
	// Approval is the name of the ChangeApproval.
	Approval string `json:"approval"`
	// UID of it.
	UID types.UID `json:"uid,omitempty"`
	// Digest of the change, see [HeldChange.Digest].
	Digest string `json:"digest"`
}

// Attestations of the hop of a ChangeApproval.
const (
	// AttestationDigest is the digest of the change that was approved. It tells apart what
	// shows the use of several allowances of one ChangeApproval.
	AttestationDigest = "digest"
	// AttestationReason is spec.reason, cut where long.
	AttestationReason = "reason"
	// AttestationRequester is the user who asked for the change, if there is one.
	AttestationRequester = "requester"
	// AttestationApprovers are all other people who have approved the change, if there are
	// any, separated by commas.
	AttestationApprovers = "approvers"
	// AttestationDecision is BreakGlass where one person has let the change through alone.
	AttestationDecision = "decision"
)

// GateState reports whether a managed resource's provider may act.
type GateState string

// Gate states.
const (
	// GateOpen lets the provider take the recorded actions.
	GateOpen GateState = "Open"
	// GateClosed lets the provider observe only.
	GateClosed GateState = "Closed"
	// GateUngated lets the provider do all that the Composition asks for: it does
	// not support management policies, or the function runs in mode Audit.
	GateUngated GateState = "Ungated"
)

// DesiredPolicies is the value of AnnotationDesiredPolicies, as compact JSON. It has one text for each meaning: the API server
// compares texts.
// +kubebuilder:object:generate=false
type DesiredPolicies struct {
	// V is [RecordVersion].
	V int `json:"v"`
	// Policies are the management policies that the Composition asks for, in the order Observe, LateInitialize, Create, Update,
	// Delete, or * alone. The gate never opens wider. An empty list pauses the resource. Absent where the resource
	// never had a gate.
	Policies []string `json:"policies,omitzero"`
	// Before are those that a paused resource was asked for with, where these are less than all actions.
	Before []string `json:"before,omitempty"`
	// Mode is Audit where the Composition runs the function in mode Audit: the resource has no gate then. Absent otherwise.
	Mode Mode `json:"mode,omitempty"`
}

// GateRecord is the value of AnnotationGate. With state Ungated it has v, state and audit alone.
type GateRecord struct {
	// V is [RecordVersion].
	V int `json:"v"`
	// State of the gate.
	State GateState `json:"state"`
	// Actions that are open, beyond the closed set.
	Actions []string `json:"actions,omitempty"`
	// Generation of the managed resource that the last opening or closing
	// produced.
	Generation int64 `json:"generation,omitempty"`
	// Since is when the state was entered.
	Since metav1.Time `json:"since,omitzero"`
	// Consumed is the greatest generation of an allowance that has landed.
	// External allowances up to it never open the gate again.
	Consumed int64 `json:"consumed,omitempty"`
	// Creating is true while the gate is open for the resource's first creation.
	Creating bool `json:"creating,omitempty"`
	// Unacknowledged is true of the closed gate of a resource that was there before, until
	// its provider is known to support management policies.
	Unacknowledged bool `json:"unacknowledged,omitempty"`
	// Audit is true where the gate was taken away because the function runs in
	// mode Audit, with state Ungated only.
	Audit bool `json:"audit,omitempty"`
	// Existed is true of a resource whose external object was there before it,
	// until an update that is allowed has made of that what the spec says. Updates
	// wait until they are for all that differs.
	Existed bool `json:"existed,omitempty"`
	// Keeps is true where a deletion is allowed and the external object stays all the same: it existed, or
	// another deletion policy is asked for than is stored. The resource is released then.
	Keeps bool `json:"keeps,omitempty"`
	// Compared are the fields of spec.forProvider in which the external object was compared with the spec when the gate last
	// closed, as hashes of two bytes in base64; empty where it was not, or in too many.
	Compared string `json:"compared,omitempty"`
	// Differs are the fields of spec.forProvider in which it differed then, or spec.forProvider alone for many: these are no
	// drift.
	Differs []string `json:"differs,omitempty"`
	// Object is a hash of the UID or ARN of the external object when the gate last closed; empty where the provider showed none.
	Object string `json:"object,omitempty"`
	// Identity of the external object that the gate was last open for.
	Identity *ExternalIdentity `json:"identity,omitempty"`
	// Allowances that opened the gate.
	Allowances []Allowance `json:"allowances,omitempty"`
	// Windows that opened it by themselves and are not over: each does so once.
	Windows []GateWindow `json:"windows,omitempty"`
	// Unknown are fields that this version does not know.
	Unknown Unknown `json:"-"`
}

// ExternalIdentity says which external object a managed resource stands for, as far as it says so itself.
type ExternalIdentity struct {
	// Config is its ProviderConfig, as KIND/NAME, or NAME where the managed resource says no kind.
	Config string `json:"config,omitempty"`
	// Name is its external name; empty where it has none yet, or where that says nothing.
	Name string `json:"name,omitempty"`
	// Fields of its spec that say where it is, by path, as text; of a long one its hash.
	Fields map[string]string `json:"fields,omitempty"`
}

// GateWindow is an UpgradeAllowance that opened a gate by itself.
type GateWindow struct {
	// Name of the window.
	Name string `json:"name"`
	// UID distinguishes it from another one of its name.
	UID types.UID `json:"uid"`
}

// ManagerRecord is the value of AnnotationManager: the manager that maintains webhook
// configurations, and what its things are called.
type ManagerRecord struct {
	// Version of the manager.
	Version string `json:"version"`
	// Namespace that the manager, its leases and its secrets are in.
	Namespace string `json:"namespace"`
	// ServiceAccount that it runs as, in that namespace.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Heartbeat is the lease that is renewed every ten seconds while any manager
	// serves the webhook.
	Heartbeat string `json:"heartbeat"`
	// Leader is the lease of the one that leads; empty where none is elected.
	Leader string `json:"leader,omitempty"`
	// Secret that holds the certificate that the manager made; empty where one is
	// mounted.
	Secret string `json:"secret,omitempty"`
	// MaxOpen is how long a gate may be open where no policy says.
	MaxOpen metav1.Duration `json:"maxOpen"`
	// WithoutDrift are the kinds of which drift is not looked for, as KIND.GROUP, *.GROUP or *.
	WithoutDrift []string `json:"withoutDrift,omitempty"`
}

// LabelAggregate is on the ClusterRoles whose rules the manager gets, "true": those
// for the kinds that are governed.
const LabelAggregate = AnnotationPrefix + "aggregate-to-manager"

// LabelOwn is on the Leases and on the Secret with certificates that a manager
// makes for itself, "true": they go when Kausality is removed.
const LabelOwn = AnnotationPrefix + "own"
