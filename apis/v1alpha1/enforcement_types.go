// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EnforcementSpec says where and how strictly unallowed changes are met.
type EnforcementSpec struct {
	// Match selects the resources.
	Match EnforcementMatch `json:"match"`

	// MatchConditions are CEL expressions that must all be true for the
	// Enforcement to apply. They see object, oldObject, parent, request,
	// namespaceObject and now, and neither variables, params nor authorizer. On
	// delete, object is the object to delete. One that cannot be evaluated counts as
	// true where the failure policy is Fail, and as false where it is Ignore.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`

	// ValidationActions: Deny refuses the request, Hold admits it with the
	// unallowed fields at their old value, Warn and Audit only report.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || self.all(a, a in ['Warn', 'Audit'])",message="only Warn and Audit may be combined"
	ValidationActions []ValidationAction `json:"validationActions"`

	// FailurePolicy is what the API server does when the webhook is down, and
	// what becomes of what the Enforcement is about while that does not compile:
	// with Fail it is refused, unless the actions are Warn or Audit.
	// +optional
	// +kubebuilder:default=Fail
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// UnnamedFields says what becomes of a change of a field that no
	// AllowancePolicy names, of an object without a parent whose kind has a
	// policy that says who may initiate: Enforce takes it for one that nobody may
	// initiate, Ignore lets it be.
	// +optional
	// +kubebuilder:default=Enforce
	UnnamedFields UnnamedFields `json:"unnamedFields,omitempty"`

	// Exceptions let subjects make mutations without an allowance, for a time.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Exceptions []Exception `json:"exceptions,omitempty"`
}

// EnforcementMatch selects resources in the vocabulary of
// admissionregistration.k8s.io.
type EnforcementMatch struct {
	// ResourceRules of which one must match.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ResourceRules []ResourceRule `json:"resourceRules"`
	// ExcludeResourceRules of which none may match.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ExcludeResourceRules []ResourceRule `json:"excludeResourceRules,omitempty"`
	// NamespaceSelector selects namespaces by label. It does not limit
	// cluster-scoped objects.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// ObjectSelector selects objects by label.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`
}

// ResourceRule names resources, and operations on them.
type ResourceRule struct {
	// APIGroups of the resources; * is any.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	APIGroups []string `json:"apiGroups"`
	// Resources by plural name; * is any.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []string `json:"resources"`
	// APIVersions in one of which the resources are served; * is any, and so is none.
	// The rule is about requests in any version of such a resource, as with
	// matchPolicy Equivalent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	APIVersions []string `json:"apiVersions,omitempty"`
	// Operations on the resources; * is any, and so is none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Operations []Operation `json:"operations,omitempty"`
	// Scope of the resources: Cluster, Namespaced or *, which is any. Namespaces are
	// cluster-scoped.
	// +optional
	Scope Scope `json:"scope,omitempty"`
	// ResourceNames are the names of objects; none is any. One that is made without a
	// name, by generateName, has none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// Operation is what is done to an object.
// +kubebuilder:validation:Enum=CREATE;UPDATE;DELETE;*
type Operation string

// Operations.
const (
	// OperationCreate makes an object.
	OperationCreate Operation = "CREATE"
	// OperationUpdate changes one.
	OperationUpdate Operation = "UPDATE"
	// OperationDelete deletes one.
	OperationDelete Operation = "DELETE"
	// OperationAll is any of them.
	OperationAll Operation = "*"
)

// Scope is whether objects are in namespaces.
// +kubebuilder:validation:Enum=Cluster;Namespaced;*
type Scope string

// Scopes.
const (
	// ScopeCluster is of objects that are in no namespace.
	ScopeCluster Scope = "Cluster"
	// ScopeNamespaced is of those that are in one.
	ScopeNamespaced Scope = "Namespaced"
	// ScopeAll is any of these.
	ScopeAll Scope = "*"
)

// MatchCondition is a named CEL expression.
type MatchCondition struct {
	// Name of the condition.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Expression that must be true.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`
}

// ValidationAction is what to do about an unallowed change.
// +kubebuilder:validation:Enum=Deny;Hold;Warn;Audit
type ValidationAction string

// Validation actions.
const (
	// ActionDeny refuses the request.
	ActionDeny ValidationAction = "Deny"
	// ActionHold admits the request with unallowed fields at their old value.
	ActionHold ValidationAction = "Hold"
	// ActionWarn admits the request with a warning.
	ActionWarn ValidationAction = "Warn"
	// ActionAudit admits the request and records the finding.
	ActionAudit ValidationAction = "Audit"
)

// FailurePolicy is what the API server does when the webhook is down.
// +kubebuilder:validation:Enum=Fail;Ignore
type FailurePolicy string

// Failure policies.
const (
	// FailurePolicyFail refuses requests.
	FailurePolicyFail FailurePolicy = "Fail"
	// FailurePolicyIgnore admits requests unseen.
	FailurePolicyIgnore FailurePolicy = "Ignore"
)

// UnnamedFields says what becomes of changes of fields that no policy names.
// +kubebuilder:validation:Enum=Enforce;Ignore
type UnnamedFields string

// What may become of them.
const (
	// UnnamedFieldsEnforce takes the change for one that nobody may initiate.
	UnnamedFieldsEnforce UnnamedFields = "Enforce"
	// UnnamedFieldsIgnore lets it be.
	UnnamedFieldsIgnore UnnamedFields = "Ignore"
)

// Exception lets subjects make mutations without an allowance, until it ends.
type Exception struct {
	// Name of the exception.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Subjects it is for, by name.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.kind != 'Permission')",message="an exception is for subjects by name, and for no Permission"
	Subjects []Subject `json:"subjects"`
	// Mutations it allows: field paths, create or delete.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Mutations []string `json:"mutations"`
	// Until is when it ends, exclusive.
	Until metav1.Time `json:"until"`
	// Reason for it, such as a ticket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
}

// NamedResource is a kind and the name of its resource.
type NamedResource struct {
	// Group of the kind; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Kind, in its singular.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Resource by which rules name it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Resource string `json:"resource"`
}

// EnforcementStatus is what the manager found out about an Enforcement.
type EnforcementStatus struct {
	// ObservedGeneration is the generation the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// TypeChecking holds warnings: match conditions that do not fit the schemas of
	// the kinds that the rules name, of ten of these at most. They never keep them
	// from being evaluated.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	TypeChecking []TypeCheckingWarning `json:"typeChecking,omitempty"`
	// Resources are those that the rules are about by another name than their kind
	// suggests, such as gateways of Gateway: a composition function knows kinds alone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Resources []NamedResource `json:"resources,omitempty"`
	// Conditions: Ready with reason InForce, Invalid, KindUnknown or RightsMissing.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Enforcement says where and how strictly unallowed changes are met. Without
// one nothing is refused.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=enf,categories=kausality
// +kubebuilder:printcolumn:name="Actions",type=string,JSONPath=".spec.validationActions"
// +kubebuilder:printcolumn:name="FailurePolicy",type=string,JSONPath=".spec.failurePolicy"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type Enforcement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the Enforcement asks for.
	Spec EnforcementSpec `json:"spec"`
	// Status is what was found out about it.
	// +optional
	Status EnforcementStatus `json:"status,omitempty"`
}

// EnforcementList is a list of Enforcement.
//
// +kubebuilder:object:root=true
type EnforcementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Enforcement `json:"items"`
}
