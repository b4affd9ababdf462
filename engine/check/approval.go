// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// checkApproval finds Enforcements that do not let the changes be stored from which follows
// what a policy has people approve.
func (l *linter) checkApproval(p Item[*v1alpha1.AllowancePolicy]) {
	spec := &p.Object.Spec
	if policy.RequiredApprovals(spec) == 0 || !policy.HasInitiators(spec) {
		return
	}

	for _, item := range l.Input.Enforcements {
		e, _ := enforcement.Compile(item.Object) // Of a broken one it is told, and what compiles is looked at.
		if action := e.Action(); action != v1alpha1.ActionDeny && action != v1alpha1.ActionHold {
			continue
		}

		about := func(k kind.Served) bool {
			return policy.IsAbout(&spec.Match, k.GVK.GroupKind()) && e.Covers(k.GroupResource())
		}
		if slices.ContainsFunc(l.Input.Kinds, about) {
			l.report.addWith(p.At, item.At, ApprovalRefused, "spec.approval", fmt.Sprintf(
				"Enforcement %q (%s) does not let a change of a %s be stored that waits for approvals: nothing follows that could be approved",
				item.Object.GetName(), e.Action(), policy.DescribeKinds(&spec.Match)),
				"have the Enforcement name what follows, and not what people edit, or set its validationActions to Warn")
		}
	}
}

// checkApprovals says where nothing waits for the approvals that a policy asks for: where
// nobody initiates by it, and of creations and deletions, which are made or refused at once.
func checkApprovals(p *v1alpha1.AllowancePolicySpec) []Finding {
	if policy.RequiredApprovals(p) == 0 {
		return nil
	}

	if !policy.HasInitiators(p) {
		return []Finding{found(ApprovalIdle, "spec.approval", "nobody initiates anything "+
			"by the policy, so that there is nothing to approve: give a subject mayInitiate: true, or leave approval out")}
	}

	var out []Finding

	for i, text := range p.Match.Fields {
		if text == v1alpha1.MutationCreate || text == v1alpha1.MutationDelete {
			out = append(out, found(ApprovalIdle, field.NewPath("spec", "match", "fields").Index(i).String(),
				fmt.Sprintf("it does not wait for approvals: while the policy asks for them, nobody may %s an object by it; "+
					"name it in a policy without approval", text)))
		}
	}

	return out
}
