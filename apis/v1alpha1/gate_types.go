// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GateSettings say how the gates are moved that a policy's External allowances
// open. Where allowances of several policies hold a gate open, every closeWhen
// must hold, the longest settle and the shortest maxOpen count, and one policy
// that says Close is enough.
type GateSettings struct {
	// CloseWhen is a CEL expression that is true once the change is in the
	// external system, with the managed resource as its only variable, object.
	// It takes the place of comparing spec.forProvider with status.atProvider;
	// Synced and asynchronous operations are waited for all the same. While it
	// cannot be evaluated the gate stays open, and that is reported.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	CloseWhen string `json:"closeWhen,omitempty"`

	// Settle is how long a change must look applied where neither closeWhen nor
	// status.atProvider shows it, up to 24h. Absent means the manager's
	// --settle.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('24h')",message="must be at most 24h"
	Settle *metav1.Duration `json:"settle,omitempty"`

	// MaxOpen is how long a gate may be open before it is overdue, from 1s to
	// 720h. Absent means the manager's --max-open.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="must be between 1s and 720h"
	MaxOpen *metav1.Duration `json:"maxOpen,omitempty"`

	// WhenOverdue says what becomes of a gate that is overdue: Warn leaves it
	// open, Close closes it for another maxOpen or until there is a newer
	// allowance, and consumes nothing. A gate that is open for the resource's
	// first creation or for its deletion stays open. Absent means the manager's
	// --overdue.
	// +optional
	WhenOverdue OverdueAction `json:"whenOverdue,omitempty"`
}

// OverdueAction says what becomes of a gate that has been open for too long.
// +kubebuilder:validation:Enum=Warn;Close
type OverdueAction string

// Overdue actions.
const (
	// OverdueWarn reports the gate and leaves it open.
	OverdueWarn OverdueAction = "Warn"
	// OverdueClose reports the gate and closes it for a while.
	OverdueClose OverdueAction = "Close"
)
