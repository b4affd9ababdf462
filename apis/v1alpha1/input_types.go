// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Mode says what the function does about an unallowed change.
// +kubebuilder:validation:Enum=Hold;Fatal;Audit
type Mode string

// Modes.
const (
	// ModeHold keeps the observed value of what is not allowed.
	ModeHold Mode = "Hold"
	// ModeFatal fails the pipeline.
	ModeFatal Mode = "Fatal"
	// ModeAudit lets the change pass and reports it.
	ModeAudit Mode = "Audit"
)

// Repair says what the function does about what somebody has changed or deleted by hand.
// +kubebuilder:validation:Enum=Apply;Hold
type Repair string

// What is done about it.
const (
	// RepairApply puts it back.
	RepairApply Repair = "Apply"
	// RepairHold holds that as any other change.
	RepairHold Repair = "Hold"
)

// Input configures one pipeline step of function-kausality.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Input struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Mode says what to do about an unallowed change.
	// +optional
	// +kubebuilder:default=Hold
	Mode Mode `json:"mode,omitempty"`

	// Repair says what to do where somebody has changed or deleted by hand what the
	// Composition composes, and still composes as before. By default, what the function's
	// flag --repair says.
	// +optional
	Repair Repair `json:"repair,omitempty"`

	// ServiceAccount is the user name under which Crossplane composes.
	// +optional
	// +kubebuilder:default="system:serviceaccount:crossplane-system:crossplane"
	// +kubebuilder:validation:MaxLength=512
	ServiceAccount string `json:"serviceAccount,omitempty"`

	// PolicySelector limits the AllowancePolicies and UpgradeAllowances that
	// this step reads to those with these labels.
	// +optional
	PolicySelector map[string]string `json:"policySelector,omitempty"`

	// WithoutLateInitialize are kinds of managed resources whose provider is
	// built on a crossplane-runtime before 1.20, which does not support
	// managementPolicies of Observe, LateInitialize and Update alone:
	// KIND.GROUP, *.GROUP for all of a group, or * for all. It should be what
	// the manager's flag --gate-without-late-initialize says.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=512
	WithoutLateInitialize []string `json:"withoutLateInitialize,omitempty"`

	// Identity is what decides, besides the external name, the provider config
	// and the place, which external object a managed resource of a kind stands
	// for, as KIND.GROUP=FIELD, such as
	// Topic.kafka.example.org=spec.forProvider.clusterId. It should be what the
	// manager's flag --gate-identity says.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	Identity []string `json:"identity,omitempty"`
}
