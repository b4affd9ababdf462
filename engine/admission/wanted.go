// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import "github.com/kausality-io/kausality-crossplane/apis/v1alpha1"

// Config is what is asked for.
type Config struct {
	Policies     []v1alpha1.AllowancePolicy
	Windows      []v1alpha1.UpgradeAllowance
	Enforcements []v1alpha1.Enforcement
}
