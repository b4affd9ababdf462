// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/kausality-io/kausality-crossplane/apis/v1alpha1"

// RequiredApprovals is how many other people have to approve what follows from a change of
// those who may initiate it by a policy; 0 where nobody has to.
func RequiredApprovals(spec *v1alpha1.AllowancePolicySpec) int32 {
	if spec.Approval == nil {
		return 0
	}

	return max(spec.Approval.Required, 1)
}

// RequiredApprovals is how many other people have to approve what follows from a change of
// those who may initiate it by the policy; 0 where nobody has to.
func (p *Policy) RequiredApprovals() int32 { return RequiredApprovals(&p.spec) }
