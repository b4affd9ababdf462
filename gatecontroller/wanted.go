// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import "github.com/kausality-io/kausality-crossplane/apis/v1alpha1"

// wanted is what is asked for.
type wanted struct {
	policies     []v1alpha1.AllowancePolicy
	windows      []v1alpha1.UpgradeAllowance
	enforcements []v1alpha1.Enforcement
}
