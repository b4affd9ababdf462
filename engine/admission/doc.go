// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission builds what has the API server ask Kausality: webhook
// configurations, and the ValidatingAdmissionPolicies, called guards, with their
// bindings. It is given the policies, windows and Enforcements, the kinds that are
// served, and how the webhook is reached, and returns objects. It reads and writes
// nothing.
package admission
