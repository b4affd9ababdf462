// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byDeletion allows deleting what a deleted parent leaves behind: a managed
// resource only where a grant to delete its external resource is recorded, or
// that would stay.
func byDeletion(o objects, by writer, problems *problems) (Finding, bool) {
	switch {
	case o.Operation != OperationDelete:
		return Finding{}, false
	case resource.Deleting(o.Old) && !resource.IsManaged(o.Old):
		return Finding{cause: cause{initiator: by.User.Name}}, true // Its end was let begin.
	case o.Root || o.OtherXR || !o.ParentGone && !resource.Deleting(o.Parent) || staysInNamespace(o, by):
		return Finding{}, false
	case !resource.IsManaged(o.Old):
		return Finding{cause: implicit(o, by, problems, v1alpha1.MutationDelete)}, true
	}

	if a, ok := deletionGrant(o, problems); ok {
		return Finding{Policy: a.Policy, cause: cause{
			initiator: a.Initiator, trace: withoutLast(a.Trace), propagated: true,
		}}, true
	}

	if gate.Orphans(o.Old) {
		return Finding{cause: implicit(o, by, problems, v1alpha1.MutationDelete)}, true
	}

	return Finding{}, false
}

func withoutLast(trace []v1alpha1.Hop) []v1alpha1.Hop { return trace[:max(0, len(trace)-1)] }
