// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byInitializing allows what a parent does before it was ever ready.
func (j *judge) byInitializing(change.Change) (Finding, bool) {
	if j.Operation == OperationDelete || j.Parent == nil || resource.Deleting(j.Parent) || j.adopted() ||
		j.parentBuilt() || !j.builds() {
		return Finding{}, false
	}

	f := Finding{cause: j.implicit(v1alpha1.MutationCreate)}
	f.cause.external = implicitExternal()

	return f, true
}

// byDeletion allows deleting what a deleted parent leaves behind: a managed
// resource only where a grant to delete its external resource is recorded, or
// that would stay.
func (j *judge) byDeletion(change.Change) (Finding, bool) {
	switch {
	case j.Operation != OperationDelete:
		return Finding{}, false
	case resource.Deleting(j.Old) && !resource.IsManaged(j.Old):
		return Finding{cause: cause{initiator: j.User.Name}}, true // Its end was let begin.
	case j.root() || j.otherXR || !j.ParentGone && !resource.Deleting(j.Parent) || j.staysInNamespace():
		return Finding{}, false
	case !resource.IsManaged(j.Old):
		return Finding{cause: j.implicit(v1alpha1.MutationDelete)}, true
	}

	if a, ok := j.deletionGrant(); ok {
		return Finding{Policy: a.Policy, cause: cause{
			initiator: a.Initiator, trace: withoutLast(a.Trace), propagated: true,
		}}, true
	}

	if gate.Orphans(j.Old) {
		return Finding{cause: j.implicit(v1alpha1.MutationDelete)}, true
	}

	return Finding{}, false
}

func withoutLast(trace []v1alpha1.Hop) []v1alpha1.Hop { return trace[:max(0, len(trace)-1)] }

// implicit is the cause of what follows from a parent's creation or
// deletion: that entry of its trace, or else the newest. A deletion whose
// parent left no trace is due to the user who makes it.
func (l *lineage) implicit(field string) cause {
	out := cause{initiator: l.User.Name, propagated: true}
	if l.Parent == nil {
		return out
	}

	entries, err := allowance.ParseTrace(l.Parent)
	if err != nil {
		l.problem(inObject(l.Parent, err))
	}

	i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == field })
	if i < 0 && field == v1alpha1.MutationCreate && len(entries) > 0 {
		i = 0
	}

	if i >= 0 {
		out.initiator, out.trace = entries[i].Initiator, l.moved(entries[i].Trace)

		return out
	}

	out.trace = l.moved([]v1alpha1.Hop{{
		Kind: l.Parent.GetKind(), Name: resource.Name(l.Parent),
		Generation: resource.Generation(l.Parent), Field: field,
	}})

	return out
}

// moved is a path of the parent as the object carries it.
func (l *lineage) moved(trace []v1alpha1.Hop) []v1alpha1.Hop {
	return allowance.MoveTrace(trace, resource.String(l.Parent.Object, "metadata", "namespace"),
		resource.String(l.target().Object, "metadata", "namespace"))
}
