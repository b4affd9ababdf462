// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names of what the manager maintains in a cluster.
const (
	// NameWebhooks is that of the mutating and of the validating webhook
	// configuration.
	NameWebhooks = "kausality"
	// NameWriterGuard, NameDeleteGuard and NameUsageGuard are those of
	// ValidatingAdmissionPolicies and their bindings: of who moves gates, of what is
	// not deleted under a closed one, and of what a provider still needs.
	NameWriterGuard = "kausality-gate-writer"
	NameDeleteGuard = "kausality-gate-delete"
	NameUsageGuard  = "kausality-usage-delete"
	// NameBindGuard is that of the ValidatingAdmissionPolicy, and its binding, of who makes
	// AllowanceBindings.
	NameBindGuard = "kausality-bind"
	// NameParameterGuard is that of the ValidatingAdmissionPolicy, and its binding, of the
	// CRDs of what policies have parameters of.
	NameParameterGuard = "kausality-params"
	// NameApprovalGuard, NamePendingGuard and NameHeldGuard are those of
	// ValidatingAdmissionPolicies and their bindings: of what ChangeApprovals say of who
	// made them, of who writes PendingChanges, and of who says of an XR or a Claim what is
	// held.
	NameApprovalGuard = "kausality-approval"
	NamePendingGuard  = "kausality-pending"
	NameHeldGuard     = "kausality-held"
	// PrefixDefinitionGuard goes before the plural of a kind of ours in the name of
	// what guards its CRD.
	PrefixDefinitionGuard = "kausality-crd-"
)

// Definition is one of our kinds, as its CRD names it.
//
// +kubebuilder:object:generate=false
type Definition struct {
	Kind, Plural string
	// Namespaced is true where its objects are in namespaces.
	Namespaced bool
	// Unguarded is true where nothing is let through for want of its objects: its CRD may go
	// at any time.
	Unguarded bool
}

// Name of the CRD.
func (d Definition) Name() string { return d.Plural + "." + Group }

// Definitions are our kinds that the API server serves, by name.
func Definitions() []Definition {
	return []Definition{
		{Kind: "AllowanceBinding", Plural: "allowancebindings", Namespaced: true},
		{Kind: "AllowancePolicy", Plural: "allowancepolicies"},
		{Kind: "ChangeApproval", Plural: "changeapprovals", Namespaced: true, Unguarded: true},
		{Kind: "Enforcement", Plural: "enforcements"},
		{Kind: "PendingChange", Plural: "pendingchanges", Namespaced: true, Unguarded: true},
		{Kind: "UpgradeAllowance", Plural: "upgradeallowances"},
	}
}
