// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byInitializing allows what a parent does before it was ever ready.
func byInitializing(o objects, by writer, how manner, now time.Time, problems *problems) (Finding, bool) {
	if o.Operation == OperationDelete || o.Parent == nil || resource.Deleting(o.Parent) || adopted(o, how) ||
		o.parentBuilt(now) || !builds(o, by, how) {
		return Finding{}, false
	}

	f := Finding{cause: implicit(o, by, problems, v1alpha1.MutationCreate)}
	f.cause.external = implicitExternal()

	return f, true
}

// implicit is the cause of what follows from a parent's creation or
// deletion: that entry of its trace, or else the newest. A deletion whose
// parent left no trace is due to the user who makes it.
func implicit(o objects, by writer, problems *problems, field string) cause {
	out := cause{initiator: by.User.Name, propagated: true}
	if o.Parent == nil {
		return out
	}

	entries, err := allowance.ParseTrace(o.Parent)
	if err != nil {
		problems.add(inObject(o.Parent, err))
	}

	i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == field })
	if i < 0 && field == v1alpha1.MutationCreate && len(entries) > 0 {
		i = 0
	}

	if i >= 0 {
		out.initiator, out.trace = entries[i].Initiator, o.moved(entries[i].Trace)

		return out
	}

	out.trace = o.moved([]v1alpha1.Hop{{
		Kind: o.Parent.GetKind(), Name: resource.Name(o.Parent),
		Generation: resource.Generation(o.Parent), Field: field,
	}})

	return out
}

// moved is a path of the parent as the object carries it.
func (o objects) moved(trace []v1alpha1.Hop) []v1alpha1.Hop {
	return allowance.MoveTrace(trace, resource.String(o.Parent.Object, "metadata", "namespace"),
		resource.String(o.target().Object, "metadata", "namespace"))
}
