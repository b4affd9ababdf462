// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

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

// CheckApproval says where nothing waits for the approvals that the policy asks for: where
// nobody initiates by it, and of creations and deletions, which are made or refused at once.
func (p *Policy) CheckApproval() []v1alpha1.TypeCheckingWarning {
	if p.RequiredApprovals() == 0 {
		return nil
	}

	if !HasInitiators(&p.spec) {
		return []v1alpha1.TypeCheckingWarning{{Field: field.NewPath("spec", "approval").String(), Warning: "nobody initiates anything " +
			"by the policy, so that there is nothing to approve: give a subject mayInitiate: true, or leave approval out"}}
	}

	var out []v1alpha1.TypeCheckingWarning

	for i, text := range p.spec.Match.Fields {
		if text != v1alpha1.MutationCreate && text != v1alpha1.MutationDelete {
			continue
		}

		out = append(out, v1alpha1.TypeCheckingWarning{
			Field: field.NewPath("spec", "match", "fields").Index(i).String(),
			Warning: fmt.Sprintf("it does not wait for approvals: while the policy asks for them, nobody may %s an object by it; "+
				"name it in a policy without approval", text),
		})
	}

	return out
}
