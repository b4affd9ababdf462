// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// What is held is served by no allowance of a later change of the parent: see [allowance.Withheld]. What Crossplane copies from a
// Claim is, besides, as long as the Claim's own record of edits has it.

// readWithheld reads at which places changes of the object are held.
func readWithheld(req *Request, o objects, above *above, problems *problems) {
	if o.Operation == OperationCreate && o.Parent != nil {
		above.withheld = req.Withheld.Besides(req.Listed).NotAfter(o.lastOfParent())
	}

	if o.Old == nil || o.Parent == nil {
		return
	}

	rec, unparsed := allowance.ParseRecord(o.Old) // Reported when it is written.
	first, unread := allowance.ReadWithheld(rec.Withheld)
	second, other := wish.Withheld(o.Old)

	if err := cmp.Or(unread, other); err != nil {
		problems.add(inObject(o.Old, err))
	}

	above.unreadable = cmp.Or(unparsed, unread, other) != nil

	if above.withheld = first.And(second).Besides(req.Listed); len(above.withheld) > 0 {
		above.withheld = above.withheld.NotAfter(o.lastOfParent())
	}
}

// heldSince returns since when a change is held that is asked for now; false where it is not, or was not before.
func heldSince(o objects, above *above, places *places, c change.Change) (allowance.Since, bool) {
	if o.Parent == nil {
		return allowance.Since{}, false
	}

	if e, ok := storedIn(o, above, places, c); ok {
		return allowance.Since{At: e.At, Of: placeOfEdit(e), Stored: true}, true
	}

	if above.unreadable {
		return always(), true
	}

	if len(above.withheld) == 0 {
		return allowance.Since{}, false
	}

	since, held := above.withheld.At(places.heldPlace(o, c))
	if held && resource.IsClaim(o.Parent) && !since.Repair() { // It is copied from there.
		since = allowance.NewSince(since.At, []string{cmp.Or(places.place(c), c.Field)})
	}

	return since, held
}

// lastOfParent is the ID of the last change of the parent.
func (o objects) lastOfParent() string {
	generation := max(resource.Generation(o.Parent), 1)

	return allowance.ID(generation, allowance.LastRequest(o.Parent, generation))
}

// always is since before any change of a parent.
func always() allowance.Since { return allowance.NewSince(allowance.ID(0, 0), nil) }

// storedIn returns the edit that a Claim has a value by that it may not have. As long as it has that, no other edit serves it.
func storedIn(o objects, above *above, places *places, c change.Change) (v1alpha1.HeldChange, bool) {
	if !resource.IsClaim(o.Parent) {
		return v1alpha1.HeldChange{}, false
	}

	for _, listed := range []bool{true, false} {
		for _, e := range above.edited {
			if listed && places.relatedToEdit(c, e) || !listed && e.Field == unlisted {
				return e, true
			}
		}
	}

	return v1alpha1.HeldChange{}, false
}

// heldPlace is where a change is. In a list whose elements have no keys that is the list.
func (places *places) heldPlace(o objects, c change.Change) allowance.Place {
	switch {
	case c.Field == v1alpha1.MutationCreate:
		return PlaceOfCreation(o.composedName())
	case len(c.Path) == 0 || o.Old == nil || o.New == nil:
		return allowance.Place{c.Field}
	}

	out := make(allowance.Place, 0, len(c.Path))

	for _, e := range places.locate().Elements(c) {
		if _, unkeyed := e.(change.Unkeyed); unkeyed {
			break
		}

		if name, ok := e.(string); ok {
			out = append(out, name)

			continue
		}

		raw, err := json.Marshal(e)
		if err != nil {
			break
		}

		out = append(out, string(raw))
	}

	return out
}

// PlaceOfCreation is that of a composed resource which is not there.
func PlaceOfCreation(name string) allowance.Place {
	return allowance.Place{v1alpha1.MutationCreate, name}
}

// storedFields are the fields of the parent that somebody has changed who may not, as [allowance.PlaceOf] has them.
func storedFields(above *above) []string {
	out := make([]string, 0, len(above.edited))
	for _, e := range above.edited {
		out = append(out, placeOfEdit(e))
	}

	return out
}

// placeOfEdit is the field of an edit, as [allowance.PlaceOf] has it.
func placeOfEdit(e v1alpha1.HeldChange) string {
	elements, _ := whereIn(e.Stored.Where).elements()

	return cmp.Or(place(elements), e.Field)
}

// withhold notes on each finding that is held since when it is, and what is withheld now.
func withhold(in *inputs, j *judged) {
	if j.action != v1alpha1.ActionHold || in.o.Parent == nil {
		return
	}

	var holds []allowance.Hold

	for _, f := range j.findings {
		if f.Verdict == Unallowed {
			holds = append(holds, allowance.Hold{
				Place: in.places.heldPlace(in.o, f.Change), Repair: storedByHand(in.o, in.places, in.desired, f.Change),
			})
		}
	}

	if len(holds) == 0 {
		return
	}

	j.next = in.above.withheld.Next(holds, sinceNow(in.o, in.how, in.above), in.above.unknownCause)
	stored := storedFields(in.above)

	for i, f := range j.findings {
		if f.Verdict != Unallowed {
			continue
		}

		since, known := heldSince(in.o, in.above, in.places, f.Change)
		if next, _ := j.next.At(in.places.heldPlace(in.o, f.Change)); !known || next.Repair() {
			since = next
		}

		j.findings[i].since, j.findings[i].stored = since, stored

		for n := range j.held {
			if j.held[n].Field == f.Change.Field {
				j.held[n].At = since.At
			}
		}
	}
}

// storedByHand reports whether somebody has changed by hand what the change would revert: nobody asks for anything new then.
func storedByHand(o objects, places *places, desired desired, c change.Change) bool {
	switch {
	case o.Operation != OperationUpdate:
		return false
	case desired.repairs != nil && desired.repairs(o.New.Object, c):
		return true
	}

	edits, _ := allowance.ParseStored(o.Old) // What does not parse is reported when it is written.

	return slices.ContainsFunc(edits, func(e v1alpha1.HeldChange) bool { return places.relatedToEdit(c, e) })
}

// sinceNow is since the last change of the parent, of what of it has not settled.
func sinceNow(o objects, how manner, above *above) allowance.Since {
	if above.unreadable {
		return always()
	}

	if len(unseen(o, above)) > 0 {
		out := allowance.NewSince(o.lastOfParent(), storedFields(above))
		out.Edited = true

		return out
	}

	if revised(o, how) {
		return allowance.Since{At: o.lastOfParent(), Edited: true}
	}

	of := append(storedFields(above), unsettled(o.Parent)...)
	if above.changed != nil {
		of = append(of, above.changed()...)
	}

	return allowance.NewSince(o.lastOfParent(), of)
}

// unseen are the edits that somebody has stored in the parent who may not, and that its controller may not have looked at before: it
// may be these that what it asks for now follows from.
func unseen(o objects, above *above) []v1alpha1.HeldChange {
	if len(above.edited) == 0 || resource.IsClaim(o.Parent) {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(above.edited), func(e v1alpha1.HeldChange) bool {
		return e.At != "" && lookedAt(o, e.At)
	})
}

// lookedAt reports whether the parent's controller has looked at it since one of its changes.
func lookedAt(o objects, id string) bool {
	seen := allowance.ID(resource.ObservedGeneration(o.Parent), math.MaxInt64)
	if p, reports := resource.ProgressOf(o.Parent); reports {
		seen = allowance.ID(p.Generation, p.Request)
	}

	return allowance.CompareID(id, seen) <= 0
}

// perhapsEdited reports whether a change that was not held before may follow from what somebody has stored in the parent who may not:
// as far as the policy that gave an allowance knows, or as it did not come up when the controller looked at what gave the allowance.
func perhapsEdited(
	o objects, how manner, policies *policy.Set, above *above, places *places, desired desired, a v1alpha1.Allowance,
	c change.Change,
) bool {
	unseen := unseen(o, above)
	if len(unseen) == 0 || allowance.OfApproval(a) || allowance.ByDeletion(a) || storedByHand(o, places, desired, c) {
		return false
	}

	p, before := policies.ByName(a.Policy), how.settles && lookedAt(o, a.ID)

	return slices.ContainsFunc(unseen, func(e v1alpha1.HeldChange) bool {
		if e.At != "" && allowance.Repeats(a, e.At, placeOfEdit(e)) { // A replay has it though another policy allows that edit.
			return false
		}

		_, err := fieldpath.Parse(e.Field)

		return before || p == nil || err != nil || p.About(o.Parent.GroupVersionKind().GroupKind(), e.Field)
	})
}

// perhapsRevised reports whether a change that was not held before may follow from an update of the parent's Composition: it did not come
// up when that looked at what gave the allowance, and does now.
func perhapsRevised(o objects, how manner, places *places, desired desired, a v1alpha1.Allowance, c change.Change) bool {
	return !allowance.OfApproval(a) && !allowance.ByDeletion(a) && lookedAt(o, a.ID) && revised(o, how) && !storedByHand(o, places, desired, c)
}

// revised reports whether the parent is an XR, of which the function reports, and composed by another revision than when it did last.
func revised(o objects, how manner) bool { return how.settles && resource.Revised(o.Parent) }

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

// Bars reports whether a change is held though there is an allowance for it: since before the change of the parent that gave
// that, or because that lets out nothing.
func (f Finding) Bars(a v1alpha1.Allowance) bool {
	return f.alone || f.since.At != "" && !f.since.Serves(a, f.stored)
}

// HeldAt is the ID of the last change of the parent when what it is of was first held; empty where it is not.
func (f Finding) HeldAt() string { return f.since.At }

// writeWithheld records what is withheld. A user asks once, and nothing is held of that any more. Of what else writes, only the
// writer that asked for what is held shows that it does so no more: by a write without it, after another change of the parent. Within
// one change, that may be our answer to it, about which the API server has asked once more.
func writeWithheld(in *inputs, j *judged, object *unstructured.Unstructured, rec *v1alpha1.ObjectRecord) {
	if in.above.unreadable || in.o.Operation != OperationUpdate || in.o.Parent == nil {
		return
	}

	next, _ := allowance.ReadWithheld(rec.Withheld) // It is readable.
	if len(next) > 0 {
		next = next.Without(storedPlaces(in.o, in.places, object))
	}

	if j.action == v1alpha1.ActionHold && in.how.Action == "" && asksForParent(in.o, in.by) {
		next = asksNow(in.o, in.by, j, rec, next)
	}

	if len(next) == 0 {
		rec.Withheld, rec.Asked = nil, v1alpha1.Asker{}
	} else if record := next.Record(); !slices.EqualFunc(rec.Withheld, record, sameWithheld) {
		rec.Withheld = record
	}
}

// asksNow is what is withheld after a write of what carries on what the parent asks for.
func asksNow(o objects, by writer, j *judged, rec *v1alpha1.ObjectRecord, had allowance.Withheld) allowance.Withheld {
	now := v1alpha1.Asker{By: fmt.Sprintf("%08x", wish.Hash(by.User.Name+"\x00"+by.FieldManager)>>halfOfHash), At: o.lastOfParent()}

	if answeredHeld(o) { // It is no change any more.
		given, _ := allowance.ParseRecord(o.Asked) // Made up, if it does not parse.
		answered, _ := allowance.ReadWithheld(given.Withheld)
		had = had.With(answered)

		if len(answered) > 0 {
			rec.Asked = now
		}
	}

	was := rec.Asked
	if len(j.next) > 0 {
		rec.Asked = now
	}

	if was.By == now.By && was.At != now.At {
		return j.next
	}

	return had.With(j.next)
}

const halfOfHash = 32

// storedPlaces are the places of the changes that pass. A list without keys is that of all that is in it, which may be held still.
func storedPlaces(o objects, places *places, object *unstructured.Unstructured) []allowance.Place {
	changes := change.Between(o.Old.Object, object.Object)
	out := make([]allowance.Place, 0, len(changes))

	for _, c := range changes {
		if place := places.heldPlace(o, c); len(place) == len(c.Path) {
			out = append(out, place)
		}
	}

	return out
}

// asksForParent reports whether the writer carries on what the parent asks for.
func asksForParent(o objects, by writer) bool {
	if resource.IsComposite(o.Parent) {
		return by.isCrossplane()
	}

	return by.User.Machine()
}

func sameWithheld(a, b v1alpha1.WithheldPlaces) bool {
	return a.At == b.At && a.Edited == b.Edited && a.Places == b.Places && slices.Equal(a.Of, b.Of)
}
