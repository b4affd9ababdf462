// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// checkApproval finds Enforcements that do not let the changes be stored from which follows
// what a policy has people approve.
func (l *linter) checkApproval(p typecheck.Item[*v1alpha1.AllowancePolicy]) {
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
			l.report.AddWith(p.At, item.At, typecheck.ApprovalRefused, "spec.approval", fmt.Sprintf(
				"Enforcement %q (%s) does not let a change of a %s be stored that waits for approvals: nothing follows that could be approved",
				item.Object.GetName(), e.Action(), policy.DescribeKinds(&spec.Match)),
				"have the Enforcement name what follows, and not what people edit, or set its validationActions to Warn")
		}
	}
}
