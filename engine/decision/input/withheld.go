// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// What is held is served by no allowance of a later change of the parent: see [allowance.Withheld]. What Crossplane copies from a
// Claim is, besides, as long as the Claim's own record of edits has it.

// readWithheld reads at which places changes of the object are held.
func readWithheld(req *request.Request, o request.Objects, above *Above, problems *request.Problems) {
	if o.Operation == request.OperationCreate && o.Parent != nil {
		above.Withheld = req.Withheld.Besides(req.Listed).NotAfter(o.LastOfParent())
	}

	if o.Old == nil || o.Parent == nil {
		return
	}

	rec, unparsed := allowance.ParseRecord(o.Old) // Reported when it is written.
	first, unread := allowance.ReadWithheld(rec.Withheld)
	second, other := wish.Withheld(o.Old)

	if err := cmp.Or(unread, other); err != nil {
		problems.Add(request.InObject(o.Old, err))
	}

	above.Unreadable = cmp.Or(unparsed, unread, other) != nil

	if above.Withheld = first.And(second).Besides(req.Listed); len(above.Withheld) > 0 {
		above.Withheld = above.Withheld.NotAfter(o.LastOfParent())
	}
}

// HeldSince returns since when a change is held that is asked for now; false where it is not, or was not before.
func HeldSince(o request.Objects, above *Above, places *request.Places, c change.Change) (allowance.Since, bool) {
	if o.Parent == nil {
		return allowance.Since{}, false
	}

	if e, ok := storedIn(o, above, places, c); ok {
		return allowance.Since{At: e.At, Of: placeOfEdit(e), Stored: true}, true
	}

	if above.Unreadable {
		return always(), true
	}

	if len(above.Withheld) == 0 {
		return allowance.Since{}, false
	}

	since, held := above.Withheld.At(places.HeldPlace(o, c))
	if held && resource.IsClaim(o.Parent) && !since.Repair() { // It is copied from there.
		since = allowance.NewSince(since.At, []string{cmp.Or(places.Place(c), c.Field)})
	}

	return since, held
}

// always is since before any change of a parent.
func always() allowance.Since { return allowance.NewSince(allowance.ID(0, 0), nil) }

// storedIn returns the edit that a Claim has a value by that it may not have. As long as it has that, no other edit serves it.
func storedIn(o request.Objects, above *Above, places *request.Places, c change.Change) (v1alpha1.HeldChange, bool) {
	if !resource.IsClaim(o.Parent) {
		return v1alpha1.HeldChange{}, false
	}

	for _, listed := range []bool{true, false} {
		for _, e := range above.Edited {
			if listed && places.RelatedToEdit(c, e) || !listed && e.Field == Unlisted {
				return e, true
			}
		}
	}

	return v1alpha1.HeldChange{}, false
}

// StoredFields are the fields of the parent that somebody has changed who may not, as [allowance.PlaceOf] has them.
func StoredFields(above *Above) []string {
	out := make([]string, 0, len(above.Edited))
	for _, e := range above.Edited {
		out = append(out, placeOfEdit(e))
	}

	return out
}

// placeOfEdit is the field of an edit, as [allowance.PlaceOf] has it.
func placeOfEdit(e v1alpha1.HeldChange) string {
	elements, _ := request.WhereIn(e.Stored.Where).Elements()

	return cmp.Or(request.Place(elements), e.Field)
}

// StoredByHand reports whether somebody has changed by hand what the change would revert: nobody asks for anything new then.
func StoredByHand(o request.Objects, places *request.Places, desired Desired, c change.Change) bool {
	switch {
	case o.Operation != request.OperationUpdate:
		return false
	case desired.repairs != nil && desired.repairs(o.New.Object, c):
		return true
	}

	edits, _ := allowance.ParseStored(o.Old) // What does not parse is reported when it is written.

	return slices.ContainsFunc(edits, func(e v1alpha1.HeldChange) bool { return places.RelatedToEdit(c, e) })
}

// SinceNow is since the last change of the parent, of what of it has not settled.
func SinceNow(o request.Objects, how request.Manner, above *Above) allowance.Since {
	if above.Unreadable {
		return always()
	}

	if len(unseen(o, above)) > 0 {
		out := allowance.NewSince(o.LastOfParent(), StoredFields(above))
		out.Edited = true

		return out
	}

	if revised(o, how) {
		return allowance.Since{At: o.LastOfParent(), Edited: true}
	}

	of := append(StoredFields(above), unsettled(o.Parent)...)
	if above.changed != nil {
		of = append(of, above.changed()...)
	}

	return allowance.NewSince(o.LastOfParent(), of)
}

// unseen are the edits that somebody has stored in the parent who may not, and that its controller may not have looked at before: it
// may be these that what it asks for now follows from.
func unseen(o request.Objects, above *Above) []v1alpha1.HeldChange {
	if len(above.Edited) == 0 || resource.IsClaim(o.Parent) {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(above.Edited), func(e v1alpha1.HeldChange) bool {
		return e.At != "" && lookedAt(o, e.At)
	})
}

// lookedAt reports whether the parent's controller has looked at it since one of its changes.
func lookedAt(o request.Objects, id string) bool {
	seen := allowance.ID(resource.ObservedGeneration(o.Parent), math.MaxInt64)
	if p, reports := resource.ProgressOf(o.Parent); reports {
		seen = allowance.ID(p.Generation, p.Request)
	}

	return allowance.CompareID(id, seen) <= 0
}

// PerhapsEdited reports whether a change that was not held before may follow from what somebody has stored in the parent who may not:
// as far as the policy that gave an allowance knows, or as it did not come up when the controller looked at what gave the allowance.
func PerhapsEdited(
	o request.Objects, how request.Manner, policies *policy.Set, above *Above, places *request.Places, desired Desired, a v1alpha1.Allowance,
	c change.Change,
) bool {
	unseen := unseen(o, above)
	if len(unseen) == 0 || allowance.OfApproval(a) || allowance.ByDeletion(a) || StoredByHand(o, places, desired, c) {
		return false
	}

	p, before := policies.ByName(a.Policy), how.Settles && lookedAt(o, a.ID)

	return slices.ContainsFunc(unseen, func(e v1alpha1.HeldChange) bool {
		if e.At != "" && allowance.Repeats(a, e.At, placeOfEdit(e)) { // A replay has it though another policy allows that edit.
			return false
		}

		_, err := fieldpath.Parse(e.Field)

		return before || p == nil || err != nil || p.About(o.Parent.GroupVersionKind().GroupKind(), e.Field)
	})
}

// PerhapsRevised reports whether a change that was not held before may follow from an update of the parent's Composition: it did not come
// up when that looked at what gave the allowance, and does now.
func PerhapsRevised(
	o request.Objects, how request.Manner, places *request.Places, desired Desired, a v1alpha1.Allowance, c change.Change,
) bool {
	return !allowance.OfApproval(a) && !allowance.ByDeletion(a) && lookedAt(o, a.ID) && revised(o, how) && !StoredByHand(o, places, desired, c)
}

// revised reports whether the parent is an XR, of which the function reports, and composed by another revision than when it did last.
func revised(o request.Objects, how request.Manner) bool {
	return how.Settles && resource.Revised(o.Parent)
}

// unsettled are the fields of an object whose change was allowed, and has not settled, as [allowance.PlaceOf] has them.
func unsettled(u *unstructured.Unstructured) []string {
	progress, reports := resource.ProgressOf(u)

	settled := progress.Settled
	if !reports {
		settled = v1alpha1.Settled{Generation: resource.ObservedGeneration(u)}
	}

	if !reports && settled.Generation == 0 { // Nothing tells: of the last change alone it is sure that it has not.
		settled.Generation = resource.Generation(u) - 1
	}

	var out []string

	entries, _ := allowance.ParseTrace(u) // What does not parse is reported when it is written.
	for _, e := range entries {
		n := len(e.Trace)
		if e.Generation > settled.Generation || n > 0 && e.Generation == settled.Generation && e.Trace[n-1].Request > settled.Request {
			out = append(out, cmp.Or(e.Place, e.Field))
		}
	}

	return out
}

// StoredPlaces are the places of the changes that pass. A list without keys is that of all that is in it, which may be held still.
func StoredPlaces(o request.Objects, places *request.Places, object *unstructured.Unstructured) []allowance.Place {
	changes := change.Between(o.Old.Object, object.Object)
	out := make([]allowance.Place, 0, len(changes))

	for _, c := range changes {
		if place := places.HeldPlace(o, c); len(place) == len(c.Path) {
			out = append(out, place)
		}
	}

	return out
}

// AsksForParent reports whether the writer carries on what the parent asks for.
func AsksForParent(o request.Objects, by request.Writer) bool {
	if resource.IsComposite(o.Parent) {
		return by.IsCrossplane()
	}

	return by.User.Machine()
}
