// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byDeletion allows deleting what a deleted parent leaves behind: a managed
// resource only where a grant to delete its external resource is recorded, or
// that would stay. Anything else that is being deleted already it allows, whatever
// its parent.
func byDeletion(o request.Objects, by request.Writer, problems *request.Problems) (finding.Finding, bool) {
	switch {
	case o.Operation != request.OperationDelete:
		return finding.Finding{}, false
	case resource.Deleting(o.Old) && !resource.IsManaged(o.Old):
		return finding.Finding{Cause: finding.Cause{Initiator: by.User.Name}}, true // Its end was let begin.
	case o.Root || o.OtherXR || !o.ParentGone && !resource.Deleting(o.Parent) || request.StaysInNamespace(o, by):
		return finding.Finding{}, false
	case !resource.IsManaged(o.Old):
		return finding.Finding{Cause: implicit(o, by, problems, v1alpha1.MutationDelete)}, true
	}

	if a, ok := DeletionGrant(o, problems); ok {
		return finding.Finding{Policy: a.Policy, Cause: finding.Cause{
			Initiator: a.Initiator, Trace: withoutLast(a.Trace), Propagated: true,
		}}, true
	}

	if managed.Orphans(o.Old) {
		return finding.Finding{Cause: implicit(o, by, problems, v1alpha1.MutationDelete)}, true
	}

	return finding.Finding{}, false
}

func withoutLast(trace []v1alpha1.Hop) []v1alpha1.Hop { return trace[:max(0, len(trace)-1)] }

// DeletionGrant is the managed resource's allowance to delete what it
// stands for, given because it is to be deleted: one that lets it be made anew for
// a field opens no gate for Delete, and so takes the place of none.
func DeletionGrant(o request.Objects, problems *request.Problems) (v1alpha1.Allowance, bool) {
	list, err := allowance.Parse(o.Old)
	if err != nil {
		problems.Add(request.InObject(o.Old, err))
	}

	for _, a := range list {
		if allowance.OfDeletion(a) && !allowance.Served(o.Old, a) && slices.Contains(management.Acting(a.Mutations), management.ActionDelete) {
			return a, true
		}
	}

	return v1alpha1.Allowance{}, false
}
