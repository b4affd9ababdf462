// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import "github.com/kausality-io/kausality-crossplane/apis/v1alpha1"

// Webhook says how the API server reaches the webhook.
type Webhook struct {
	// URL of the webhook's server, without a path; empty to use Service.
	URL string
	// Service in our namespace, and its port.
	Service string
	Port    int32
	// MutatePath, EnforcePath, ValidatePath, ApprovePath and UsagePath are the server's paths.
	MutatePath, EnforcePath, ValidatePath, ApprovePath, UsagePath string
	// Trust is what the server is verified with.
	Trust Trust
	// InjectCAFrom is a Certificate of cert-manager, as NAMESPACE/NAME, whose CA
	// is trusted instead; empty for none.
	InjectCAFrom string
	// Manager is the one that configures it.
	Manager v1alpha1.ManagerRecord
}

// Trust is what a server is verified with.
type Trust interface {
	// Bundle returns CA certificates, as PEM; none to trust those that the API
	// server trusts anyway.
	Bundle() []byte
	// Changed receives something when the bundle has changed.
	Changed() <-chan struct{}
}
