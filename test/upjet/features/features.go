// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package features has the features that generated code asks for by name.
package features

import "github.com/crossplane/crossplane-runtime/v2/pkg/feature"

// EnableBetaManagementPolicies has providers do as spec.managementPolicies says.
const EnableBetaManagementPolicies = feature.EnableBetaManagementPolicies
