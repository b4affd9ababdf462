// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/grant"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byInitializing allows what a parent does before it was ever ready.
func byInitializing(
	o request.Objects, by request.Writer, how request.Manner, now time.Time, problems *request.Problems,
) (finding.Finding, bool) {
	if o.Operation == request.OperationDelete || o.Parent == nil || resource.Deleting(o.Parent) || request.Adopted(o, how) ||
		o.ParentBuilt(now) || !request.Builds(o, by, how) {
		return finding.Finding{}, false
	}

	f := finding.Finding{Cause: implicit(o, by, problems, v1alpha1.MutationCreate)}
	f.Cause.External = grant.ImplicitExternal()

	return f, true
}

// implicit is the cause of what follows from a parent's creation or
// deletion: that entry of its trace, or else, for a creation, the newest. Without
// one it is due to the user who makes it.
func implicit(o request.Objects, by request.Writer, problems *request.Problems, field string) finding.Cause {
	out := finding.Cause{Initiator: by.User.Name, Propagated: true}
	if o.Parent == nil {
		return out
	}

	entries, err := allowance.ParseTrace(o.Parent)
	if err != nil {
		problems.Add(request.InObject(o.Parent, err))
	}

	i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == field })
	if i < 0 && field == v1alpha1.MutationCreate && len(entries) > 0 {
		i = 0
	}

	if i >= 0 {
		out.Initiator, out.Trace = entries[i].Initiator, o.Moved(entries[i].Trace)

		return out
	}

	out.Trace = o.Moved([]v1alpha1.Hop{{
		Kind: o.Parent.GetKind(), Name: resource.Name(o.Parent),
		Generation: resource.Generation(o.Parent), Field: field,
	}})

	return out
}
