// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BindingMode is whether AllowanceBindings say who may initiate by a policy.
// +kubebuilder:validation:Enum=None;Optional;Required
type BindingMode string

// Binding modes.
const (
	// BindingModeNone has bindings of the policy grant nothing.
	BindingModeNone BindingMode = "None"
	// BindingModeOptional has the subjects of bindings initiate besides the policy's own.
	BindingModeOptional BindingMode = "Optional"
	// BindingModeRequired is Optional, but that the policy's own subjects initiate only in
	// namespaces that have a binding of it.
	BindingModeRequired BindingMode = "Required"
)

// AllowanceBindingSpec says who may initiate by a policy in the binding's namespace.
// +kubebuilder:validation:XValidation:rule="self.policy == oldSelf.policy",message="policy cannot be changed: make another binding"
type AllowanceBindingSpec struct {
	// Policy is the name of the AllowancePolicy, whose bindingMode has to be Optional or
	// Required. It cannot be changed. Who makes a binding, or changes one, needs the verb
	// bind on it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Policy string `json:"policy"`

	// Subjects who may initiate what the policy is about, in the namespace of the binding:
	// for objects there, and for the cluster-scoped XRs of Claims there. The user of
	// Crossplane, and those of its providers, initiate nothing by a binding.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Subjects []BindingSubject `json:"subjects"`

	// MatchConditions must all be true for the subjects of this binding to initiate,
	// besides all that the policy asks for. They see what expressions of a policy see, but
	// for variables, params and authorizer.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	MatchConditions []BindingCondition `json:"matchConditions,omitempty"`

	// ParamRef says which objects of the policy's paramKind hold parameters of this binding:
	// what the policy asks for has to hold with these, too, for the subjects of this binding
	// to initiate. Where the policy's paramRef is not overridable they initiate nothing.
	// +optional
	ParamRef *BindingParamRef `json:"paramRef,omitempty"`
}

// BindingParamRef says which objects hold parameters of a binding: in its namespace, or
// cluster-scoped ones.
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="one of name and selector is required, and not both"
type BindingParamRef struct {
	// Name of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Selector of the objects by label, in place of name. What the policy asks for has to
	// hold with each of them.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// BindingSubjectKind is a kind of subject, as in RBAC.
// +kubebuilder:validation:Enum=User;Group;ServiceAccount
type BindingSubjectKind string

// BindingSubject is somebody whom a binding lets initiate, as the subject of a
// RoleBinding.
// +kubebuilder:validation:XValidation:rule="self.kind == 'ServiceAccount' ? has(self.__namespace__) && size(self.__namespace__) > 0 : !has(self.__namespace__)",message="namespace is required for a ServiceAccount and not allowed otherwise"
type BindingSubject struct {
	// APIGroup as in RBAC; ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind of the subject.
	Kind BindingSubjectKind `json:"kind"`

	// Name of the subject.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// Namespace of a ServiceAccount.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// BindingCondition is a named CEL expression that must be true, and what is said where it
// is not.
type BindingCondition struct {
	MatchCondition `json:",inline"`

	// Message for who is refused. If not given, it is the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// VerbBind lets its user make AllowanceBindings of an AllowancePolicy, and change them.
const VerbBind = "bind"

// Reasons of AllowanceBindings.
const (
	// ReasonPolicyUnknown means that there is no AllowancePolicy of the name.
	ReasonPolicyUnknown = "PolicyUnknown"
	// ReasonNotBindable means that the policy's bindingMode is None.
	ReasonNotBindable = "NotBindable"
	// ReasonNotOverridable means that the binding has a paramRef, and that the policy has
	// none, or one that is not overridable.
	ReasonNotOverridable = "NotOverridable"
	// ReasonPolicyNotReady means that the policy itself is not in force, or not yet.
	ReasonPolicyNotReady = "PolicyNotReady"
)

// AllowanceBindingStatus is what the manager found out about a binding.
type AllowanceBindingStatus struct {
	// ObservedGeneration is the generation the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// TypeChecking holds warnings: conditions that do not fit the schemas of the kinds
	// that the policy is about, and subjects who initiate nothing by a binding. They never
	// keep it from being used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	TypeChecking []TypeCheckingWarning `json:"typeChecking,omitempty"`

	// Conditions: Ready with reason InForce, Shadow, Invalid, PolicyUnknown, NotBindable,
	// NotOverridable or PolicyNotReady.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AllowanceBinding says who may initiate by an AllowancePolicy in one namespace, as a
// RoleBinding does of a ClusterRole. It adds who may, and never what.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=ab,categories=kausality
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=".spec.policy"
// +kubebuilder:printcolumn:name="Subjects",type=string,JSONPath=".spec.subjects[*].name"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type AllowanceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the binding asks for.
	Spec AllowanceBindingSpec `json:"spec"`
	// Status is what was found out about it.
	// +optional
	Status AllowanceBindingStatus `json:"status,omitempty"`
}

// AllowanceBindingList is a list of AllowanceBinding.
//
// +kubebuilder:object:root=true
type AllowanceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AllowanceBinding `json:"items"`
}
