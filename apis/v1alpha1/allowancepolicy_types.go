// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AllowancePolicySpec says which changes of a kind allow which mutations of
// its children and of the systems behind them.
// +kubebuilder:validation:XValidation:rule="has(self.paramKind) == has(self.paramRef)",message="paramKind and paramRef go together: the kind of the objects that hold parameters, and which of them"
type AllowancePolicySpec struct {
	// Match says which changes of which objects this policy is about.
	Match Match `json:"match"`

	// Subjects who may make use of this policy. Empty means anybody may carry
	// an allowance on, and nobody may start a chain. Where allow is empty too,
	// the policy says that nobody may change its fields, but for whom another
	// policy lets.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.filter(s, s.kind == 'Permission').size() <= 1",message="a policy has one Permission at most"
	Subjects []Subject `json:"subjects,omitempty"`

	// BindingMode says whether AllowanceBindings in a namespace may say who else initiates
	// there: None, Optional or Required. With Required the policy's own subjects, too,
	// initiate only in namespaces that have a binding of it.
	// +optional
	// +kubebuilder:default=None
	BindingMode BindingMode `json:"bindingMode,omitempty"`

	// ParamKind is the kind of the objects that hold the policy's parameters, which
	// expressions see as params. It has to be one that the manager and Crossplane may get,
	// list and watch; it is not Secret.
	// +optional
	ParamKind *ParamKind `json:"paramKind,omitempty"`

	// ParamRef says which objects of paramKind hold the parameters. Where none is there, or
	// they cannot be read, the policy lets nobody do anything, and one that forbids forbids.
	// +optional
	ParamRef *ParamRef `json:"paramRef,omitempty"`

	// Allow lists the mutations that a matching change allows. Empty means that
	// nothing follows from it; with no subject that may initiate, nobody may
	// change the fields at all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Allow []Permission `json:"allow"`

	// Gate says how the gates are moved that this policy's External allowances
	// open.
	// +optional
	Gate *GateSettings `json:"gate,omitempty"`

	// Owner of the policy, for who lacks something that it asks for.
	// +optional
	Owner *PolicyOwner `json:"owner,omitempty"`

	// Approval has what follows from the changes of the policy's own initiators wait for the
	// approval of others, as what follows from those of anybody else. Those are its subjects with
	// mayInitiate, whoever has its Permission, and the subjects of its bindings: they initiate
	// nothing by it alone. Who may not initiate a change by it does not take fewer approvals. It
	// is not about what a parent, or a window, allows.
	// +optional
	Approval *PolicyApproval `json:"approval,omitempty"`

	// EnforcementMode is Enforce, or Shadow: the policy then grants and forbids nothing, and
	// the API server asks the webhook about nothing more because of it. Of each change that
	// is decided anyway, logs, metrics and audit annotations say where the policy would have
	// it decided otherwise.
	// +optional
	// +kubebuilder:default=Enforce
	EnforcementMode EnforcementMode `json:"enforcementMode,omitempty"`
}

// ParamKind is a kind of objects that hold parameters.
// +kubebuilder:validation:XValidation:rule="!(self.apiVersion == 'v1' && self.kind == 'Secret')",message="a Secret holds no parameters: what expressions make of it is told in refusals"
type ParamKind struct {
	// APIVersion of the kind, as GROUP/VERSION, or VERSION for the core group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
}

// ParamRef says which objects hold parameters.
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="one of name and selector is required, and not both"
type ParamRef struct {
	// Name of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Namespace of the objects, where their kind has namespaces. If not given, it is that
	// of the object that is changed, and for a cluster-scoped XR of a Claim the Claim's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Selector of the objects by label, in place of name. What the policy asks for has to
	// hold with each of them.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Overridable lets AllowanceBindings have parameters of their own. What the policy asks
	// for has to hold with both then.
	// +optional
	Overridable bool `json:"overridable,omitempty"`
}

// EnforcementMode is whether a policy, or a condition of one, counts.
// +kubebuilder:validation:Enum=Enforce;Shadow
type EnforcementMode string

// Enforcement modes.
const (
	// EnforcementModeEnforce has it count.
	EnforcementModeEnforce EnforcementMode = "Enforce"
	// EnforcementModeShadow has it only be reported what it would change.
	EnforcementModeShadow EnforcementMode = "Shadow"
)

// PolicyOwner is whom to ask about a policy.
type PolicyOwner struct {
	// Name of a team or person.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern="^[^\n\r]*$"
	Name string `json:"name"`
	// Contact is where they are reached, such as a channel, an address or a URL.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[^\n\r]*$"
	Contact string `json:"contact,omitempty"`
}

// PolicyApproval says how many people have to approve what follows from a change.
type PolicyApproval struct {
	// Required is how many other people have to approve it, each with a ChangeApproval.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Required int32 `json:"required"`
}

// Match selects changes of parent objects.
// +kubebuilder:validation:XValidation:rule="has(self.kind) != has(self.kinds)",message="one of kind and kinds is required, and not both"
type Match struct {
	// APIGroup of the parent. Absent means any group; the empty string is
	// taken as absent too.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind of the parent.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// Kinds of the parent, in place of kind: the policy is about each of them, in the
	// same API group.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Kinds []string `json:"kinds,omitempty"`

	// Fields that trigger the policy: field paths such as spec.size or
	// spec.containers[*].image, each covering everything below it, or create
	// or delete. A key that ends in *, as in metadata.labels[team.example.org/*],
	// stands for all keys with that prefix.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Fields []string `json:"fields"`

	// ExcludeFields are paths below fields that the policy is not about, as if fields did
	// not name them. A change of more than one of these, such as of a map as a whole, the
	// policy does not allow.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	ExcludeFields []string `json:"excludeFields,omitempty"`

	// Variables that expressions below may use as variables.NAME, and each
	// variable those before it. One is evaluated when it is first used, and once for
	// a change.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Variables []Variable `json:"variables,omitempty"`

	// CEL expressions that must all be true. They see object, oldObject, parent, request,
	// namespaceObject, now, authorizer, variables and params.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=10240
	CEL []string `json:"cel,omitempty"`

	// MatchConditions must all be true, as those of cel, and say in words what is
	// missing where they are not.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	MatchConditions []PolicyCondition `json:"matchConditions,omitempty"`

	// Capture lists fields whose values are stored in the trace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Capture []string `json:"capture,omitempty"`

	// NamespaceSelector selects namespaces by label. It does not limit
	// cluster-scoped objects.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// ObjectSelector selects objects by label.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`
}

// Variable is a named CEL expression of any type.
type Variable struct {
	// Name of the variable, a CEL identifier.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-zA-Z_][a-zA-Z0-9_]*$"
	Name string `json:"name"`
	// Expression that gives its value. It sees what those of cel see, of the
	// variables those before it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`
}

// PolicyCondition is a named CEL expression that must be true, and what is said
// where it is not.
type PolicyCondition struct {
	MatchCondition `json:",inline"`

	// Message for who is refused. If not given, it is the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// MessageExpression gives the message, as text of one line; it sees what the
	// expression sees. Where it fails, gives nothing, or the object holds a
	// credential, Message is used.
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	MessageExpression string `json:"messageExpression,omitempty"`

	// EnforcementMode is Enforce, or Shadow: the condition then counts as true, and it
	// is reported where it is not, as for a policy.
	// +optional
	// +kubebuilder:default=Enforce
	EnforcementMode EnforcementMode `json:"enforcementMode,omitempty"`
}

// SubjectKind is a kind of subject, as in RBAC, or Permission.
// +kubebuilder:validation:Enum=User;Group;ServiceAccount;Permission
type SubjectKind string

// Kinds of subjects.
const (
	// SubjectUser is a user by name.
	SubjectUser SubjectKind = "User"
	// SubjectGroup is every user of a group.
	SubjectGroup SubjectKind = "Group"
	// SubjectServiceAccount is a service account by namespace and name.
	SubjectServiceAccount SubjectKind = "ServiceAccount"
	// SubjectPermission is whoever the cluster's authorizer grants the verb
	// initiate, or initiate:NAME, on the subresource kausality of the object's resource.
	SubjectPermission SubjectKind = "Permission"
)

// Verbs and subresource of [SubjectPermission].
const (
	// VerbInitiate lets its user initiate what any such subject may.
	VerbInitiate = "initiate"
	// SubresourceKausality is of every resource, for authorization alone.
	SubresourceKausality = "kausality"
)

// Subject is somebody who may make use of a policy.
// +kubebuilder:validation:XValidation:rule="self.kind != 'Permission' || (has(self.mayInitiate) && self.mayInitiate)",message="a Permission is to initiate changes: mayInitiate: true is required"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Permission' || self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="the name of a Permission is a part of a verb: lower-case letters, digits, - and ."
// +kubebuilder:validation:XValidation:rule="self.kind == 'ServiceAccount' ? has(self.__namespace__) && size(self.__namespace__) > 0 : !has(self.__namespace__)",message="namespace is required for a ServiceAccount and not allowed otherwise"
type Subject struct {
	// APIGroup as in RBAC; ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind of the subject.
	Kind SubjectKind `json:"kind"`

	// Name of the subject.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// Namespace of a ServiceAccount.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// MayInitiate lets the subject start a new chain, and not only carry on
	// an allowance that exists on a parent.
	// +optional
	MayInitiate bool `json:"mayInitiate,omitempty"`
}

// Permission is a set of mutations of one kind of child, or of the system
// behind a managed resource.
// +kubebuilder:validation:XValidation:rule="(has(self.relation) && self.relation == 'External') ? !has(self.kind) && !has(self.apiGroup) : has(self.kind) && size(self.kind) > 0",message="kind is required for relation Child, and neither kind nor apiGroup is allowed for relation External"
type Permission struct {
	// APIGroup of the child. Absent means any group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind of the child.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// Relation of the target to the parent.
	// +optional
	// +kubebuilder:default=Child
	Relation Relation `json:"relation,omitempty"`

	// Mutations that are allowed. For Child: field paths, create or delete.
	// For External: the verbs of the system, for Crossplane Create, Update
	// and Delete.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Mutations []string `json:"mutations"`
}

// Conditions and reasons of policies and windows.
const (
	// ConditionReady is true when the object is in force.
	ConditionReady = "Ready"
	// ReasonInForce means that it compiles and the API server asks us about
	// the kinds it names.
	ReasonInForce = "InForce"
	// ReasonShadow means that it compiles, and that its enforcementMode is Shadow.
	ReasonShadow = "Shadow"
	// ReasonInvalid means that it does not compile; the message says where.
	ReasonInvalid = "Invalid"
	// ReasonKindUnknown means that the API server does not serve a kind it
	// names. It comes into force by itself once the kind is there.
	ReasonKindUnknown = "KindUnknown"
	// ReasonRightsMissing means that the manager may not do what it has to with a
	// kind it names; the message says what, and which command gives it the right.
	// It comes into force by itself then.
	ReasonRightsMissing = "RightsMissing"

	// ConditionParametersReadable is true where Kausality and Crossplane may read the
	// objects that hold the policy's parameters; a policy without any has none.
	ConditionParametersReadable = "ParametersReadable"
	// ReasonReadable means that they may.
	ReasonReadable = "Readable"
	// ReasonKindUnsupported means that the API server does not let anybody get, list and
	// watch objects of the kind, as Crossplane does; the message says which of them.
	ReasonKindUnsupported = "KindUnsupported"
	// ReasonParametersUnreadable means that the policy is of no use without.
	ReasonParametersUnreadable = "ParametersUnreadable"

	// ConditionGated is false where providers of kinds that it names cannot be
	// prevented from acting, and not there otherwise.
	ConditionGated = "Gated"
	// ReasonUnsupported means that the kind or its provider has no management
	// policies; the message says which.
	ReasonUnsupported = "ManagementPoliciesUnsupported"
)

// AllowancePolicyStatus is what the manager found out about a policy.
type AllowancePolicyStatus struct {
	// ObservedGeneration is the generation the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// TypeChecking holds warnings: expressions, closeWhen among them, and paths that
	// do not fit the schemas of the kinds, verbs that no gate knows, and a policy that nobody
	// can make use of. They never prevent it from being used.
	// +optional
	// +listType=atomic
	TypeChecking []TypeCheckingWarning `json:"typeChecking,omitempty"`

	// ParamScope is whether the objects of paramKind are in namespaces: Namespaced or
	// Cluster. Empty where that is not known.
	// +optional
	ParamScope ParamScope `json:"paramScope,omitempty"`

	// Conditions: Ready with reason InForce, Shadow, Invalid, KindUnknown, RightsMissing or
	// ParametersUnreadable, ParametersReadable with reason Readable, KindUnknown,
	// KindUnsupported or RightsMissing, and Gated with reason ManagementPoliciesUnsupported.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ParamScope is the scope of a kind of parameters.
// +kubebuilder:validation:Enum=Namespaced;Cluster
type ParamScope string

// Scopes of parameters.
const (
	// ParamScopeNamespaced is of objects in namespaces.
	ParamScopeNamespaced ParamScope = "Namespaced"
	// ParamScopeCluster is of objects in none.
	ParamScopeCluster ParamScope = "Cluster"
)

// TypeCheckingWarning is one finding of type checking.
type TypeCheckingWarning struct {
	// Field of the policy, or Enforcement, that the warning is about.
	Field string `json:"field"`
	// Warning says what is wrong with it.
	Warning string `json:"warning"`
}

// AllowancePolicy maps changes of a parent to mutations of its children.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ap;allowance,categories=kausality
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=".spec.match.kind"
// +kubebuilder:printcolumn:name="Kinds",type=string,JSONPath=".spec.match.kinds",priority=1
// +kubebuilder:printcolumn:name="Fields",type=string,JSONPath=".spec.match.fields"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason",priority=1
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=".spec.enforcementMode",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type AllowancePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the policy asks for.
	Spec AllowancePolicySpec `json:"spec"`
	// Status is what was found out about it.
	// +optional
	Status AllowancePolicyStatus `json:"status,omitempty"`
}

// AllowancePolicyList is a list of AllowancePolicy.
//
// +kubebuilder:object:root=true
type AllowancePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AllowancePolicy `json:"items"`
}
