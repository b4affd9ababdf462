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
}

// Name of the CRD.
func (d Definition) Name() string { return d.Plural + "." + Group }

// Definitions are our kinds that the API server serves, by name.
func Definitions() []Definition {
	return []Definition{
		{Kind: "AllowanceBinding", Plural: "allowancebindings", Namespaced: true},
		{Kind: "AllowancePolicy", Plural: "allowancepolicies"},
		{Kind: "Enforcement", Plural: "enforcements"},
		{Kind: "UpgradeAllowance", Plural: "upgradeallowances"},
	}
}
