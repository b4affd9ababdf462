// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// byRepair allows what puts back what somebody has changed or deleted by hand. Nothing else follows from it: what it restores was
// followed when it was made.
func byRepair(o objects, by writer, desired desired, c change.Change) (Finding, bool) {
	if o.Parent == nil || resource.Deleting(o.Parent) || !repairs(o, by, desired, c) {
		return Finding{}, false
	}

	restored := restoredBy(o, by, c)

	return Finding{cause: cause{initiator: restored.Initiator, trace: restored.Trace, propagated: true}}, true
}

// repairs reports whether a change is one: the composition function says so, to us or on the object.
func repairs(o objects, by writer, desired desired, c change.Change) bool {
	switch {
	case desired.repairsNow != nil:
		return o.New != nil && desired.repairsNow(o.New.Object, c)
	case !by.applies():
		return false
	case o.Operation == OperationCreate:
		return c.Field == v1alpha1.MutationCreate && wish.CreatesAgain(o.New, o.Parent)
	default:
		return o.Operation == OperationUpdate && wish.RepairsNow(o.Old, o.New, c)
	}
}

// restoredBy is the change that a repair restores, as far as it is known: that of the field, or else the creation; of what is
// created again, the creation of its parent.
func restoredBy(o objects, by writer, c change.Change) v1alpha1.TraceEntry {
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

// repairOf is the entry of a repair of an object: that of the change which it restores, marked.
func repairOf(by writer, now time.Time, u *unstructured.Unstructured, f Finding, place string, generation int64) v1alpha1.TraceEntry {
	out := v1alpha1.TraceEntry{
		Field: f.Change.Field, Place: place, Generation: generation, Initiator: f.cause.initiator, Trace: f.cause.trace,
		Repaired: &metav1.Time{Time: now},
	}

	// Of one hop is what somebody may change on the object itself: this is not.
	for len(out.Trace) < 2 && f.cause.initiator != by.User.Name || len(out.Trace) == 0 {
		hop := v1alpha1.Hop{Kind: u.GetKind(), Name: resource.Name(u), Generation: generation, Field: f.Change.Field}
		out.Trace = allowance.ExtendTrace(out.Trace, hop)
	}

	return out
}
