// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// MayInject reports whether a policy adds its allowances for an allowed change: a
// policy that lists who may start a chain adds them only for those, unless the
// change was itself caused from above. One that asks for approvals adds none for them.
func (auth *Authority) MayInject(p *policy.Policy, f finding.Finding) bool {
	if f.Cause.Propagated || !policy.HasInitiators(p.Spec()) {
		return true
	}

	return (p.RequiredApprovals() == 0 || f.Rule == finding.RuleUpgrade) && auth.MayInitiate(p)
}

// Expand adds one allowance per mutation of a child, or one for all verbs of an
// external system.
func Expand(out []v1alpha1.Allowance, perm v1alpha1.Permission, base v1alpha1.Allowance) []v1alpha1.Allowance {
	if perm.Relation == v1alpha1.RelationExternal {
		base.Relation, base.Mutations, base.Until = perm.Relation, perm.Mutations, nil

		return append(out, base)
	}

	base.APIGroup, base.Kind = perm.APIGroup, perm.Kind

	for _, m := range perm.Mutations {
		a := base
		if a.Mutation = m; m != v1alpha1.MutationCreate && m != v1alpha1.MutationDelete {
			a.Until = nil
		}

		out = append(out, a)
	}

	return out
}
