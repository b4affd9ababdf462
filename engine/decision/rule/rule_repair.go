// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// byRepair allows what puts back what somebody has changed or deleted by hand. Nothing else follows from it: what it restores was
// followed when it was made.
func byRepair(o request.Objects, by request.Writer, desired input.Desired, c change.Change) (finding.Finding, bool) {
	if o.Parent == nil || resource.Deleting(o.Parent) || !repairs(o, by, desired, c) {
		return finding.Finding{}, false
	}

	restored := restoredBy(o, by, c)

	return finding.Finding{Cause: finding.Cause{Initiator: restored.Initiator, Trace: restored.Trace, Propagated: true}}, true
}

// repairs reports whether a change is one: the composition function says so, to us or on the object.
func repairs(o request.Objects, by request.Writer, desired input.Desired, c change.Change) bool {
	switch {
	case desired.RepairsNow != nil:
		return o.New != nil && desired.RepairsNow(o.New.Object, c)
	case !by.Applies():
		return false
	case o.Operation == request.OperationCreate:
		return c.Field == v1alpha1.MutationCreate && wish.CreatesAgain(o.New, o.Parent)
	default:
		return o.Operation == request.OperationUpdate && wish.RepairsNow(o.Old, o.New, c)
	}
}

// restoredBy is the change that a repair restores, as far as it is known: that of the field, or else the creation; of what is
// created again, the creation of its parent.
func restoredBy(o request.Objects, by request.Writer, c change.Change) v1alpha1.TraceEntry {
	of := o.Old
	if of == nil {
		of = o.Parent
	}

	entries, _ := allowance.ParseTrace(of) // What does not parse is reported when it is written.

	made := func(e v1alpha1.TraceEntry) bool { return e.Field == v1alpha1.MutationCreate }
	i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return change.FieldCovers(e.Field, c.Path) })

	if i < 0 {
		i = slices.IndexFunc(entries, made)
	}

	if i < 0 {
		return v1alpha1.TraceEntry{Initiator: by.User.Name}
	}

	return entries[i]
}

// RepairOf is the entry of a repair of an object: that of the change which it restores, marked.
func RepairOf(
	by request.Writer, now time.Time, u *unstructured.Unstructured, f finding.Finding, place string, generation int64,
) v1alpha1.TraceEntry {
	out := v1alpha1.TraceEntry{
		Field: f.Change.Field, Place: place, Generation: generation, Initiator: f.Cause.Initiator, Trace: f.Cause.Trace,
		Repaired: &metav1.Time{Time: now},
	}

	// Of one hop is what somebody may change on the object itself: this is not.
	for len(out.Trace) < 2 && f.Cause.Initiator != by.User.Name || len(out.Trace) == 0 {
		hop := v1alpha1.Hop{Kind: u.GetKind(), Name: resource.Name(u), Generation: generation, Field: f.Change.Field}
		out.Trace = allowance.ExtendTrace(out.Trace, hop)
	}

	return out
}
