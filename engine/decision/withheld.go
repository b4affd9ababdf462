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
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// What is held is served by no allowance of a later change of the parent: see [allowance.Withheld]. What Crossplane copies from a
// Claim is, besides, as long as the Claim's own record of edits has it.

// readWithheld reads at which places changes of the object are held.
func (f *facts) readWithheld() {
	if f.Operation == OperationCreate && f.Parent != nil {
		f.withheld = f.Withheld.Besides(f.Listed).NotAfter(f.lastOfParent())
	}

	if f.Old == nil || f.Parent == nil {
		return
	}

	rec, unparsed := allowance.ParseRecord(f.Old) // Reported when it is written.
	first, unread := allowance.ReadWithheld(rec.Withheld)
	second, other := wish.Withheld(f.Old)

	if err := cmp.Or(unread, other); err != nil {
		f.problem(inObject(f.Old, err))
	}

	f.unreadable = cmp.Or(unparsed, unread, other) != nil

	if f.withheld = first.And(second).Besides(f.Listed); len(f.withheld) > 0 {
		f.withheld = f.withheld.NotAfter(f.lastOfParent())
	}
}

// heldSince returns since when a change is held that is asked for now; false where it is not, or was not before.
func (f *facts) heldSince(c change.Change) (allowance.Since, bool) {
	if f.Parent == nil {
		return allowance.Since{}, false
	}

	if e, ok := f.storedIn(c); ok {
		return allowance.Since{At: e.At, Of: placeOfEdit(e), Stored: true}, true
	}

	if f.unreadable {
		return always(), true
	}

	if len(f.withheld) == 0 {
		return allowance.Since{}, false
	}

	since, held := f.withheld.At(f.placeOf(c))
	if held && resource.IsClaim(f.Parent) && !since.Repair() { // It is copied from there.
		since = allowance.NewSince(since.At, []string{cmp.Or(f.place(c), c.Field)})
	}

	return since, held
}

// lastOfParent is the ID of the last change of the parent.
func (f *facts) lastOfParent() string {
	generation := max(resource.Generation(f.Parent), 1)

	return allowance.ID(generation, allowance.LastRequest(f.Parent, generation))
}

// always is since before any change of a parent.
func always() allowance.Since { return allowance.NewSince(allowance.ID(0, 0), nil) }

// storedIn returns the edit that a Claim has a value by that it may not have. As long as it has that, no other edit serves it.
func (f *facts) storedIn(c change.Change) (v1alpha1.HeldChange, bool) {
	if !resource.IsClaim(f.Parent) {
		return v1alpha1.HeldChange{}, false
	}

	for _, listed := range []bool{true, false} {
		for _, e := range f.edited {
			if listed && f.relatedToEdit(c, e) || !listed && e.Field == unlisted {
				return e, true
			}
		}
	}

	return v1alpha1.HeldChange{}, false
}

// placeOf is where a change is. In a list whose elements have no keys that is the list.
func (f *facts) placeOf(c change.Change) allowance.Place {
	switch {
	case c.Field == v1alpha1.MutationCreate:
		return PlaceOfCreation(f.composedName())
	case len(c.Path) == 0 || f.Old == nil || f.New == nil:
		return allowance.Place{c.Field}
	}

	out := make(allowance.Place, 0, len(c.Path))

	for _, e := range f.locate().Elements(c) {
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
func (g *grants) storedFields() []string {
	out := make([]string, 0, len(g.edited))
	for _, e := range g.edited {
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
func (g *judged) withhold() *judged {
	if g.action != v1alpha1.ActionHold || g.Parent == nil {
		return g
	}

	var holds []allowance.Hold

	for _, f := range g.findings {
		if f.Verdict == Unallowed {
			holds = append(holds, allowance.Hold{Place: g.placeOf(f.Change), Repair: g.storedByHand(f.Change)})
		}
	}

	if len(holds) == 0 {
		return g
	}

	g.next = g.withheld.Next(holds, g.sinceNow(), g.UnknownCause)
	stored := g.storedFields()

	for i, f := range g.findings {
		if f.Verdict != Unallowed {
			continue
		}

		since, known := g.heldSince(f.Change)
		if next, _ := g.next.At(g.placeOf(f.Change)); !known || next.Repair() {
			since = next
		}

		g.findings[i].since, g.findings[i].stored = since, stored

		for n := range g.held {
			if g.held[n].Field == f.Change.Field {
				g.held[n].At = since.At
			}
		}
	}

	return g
}

// storedByHand reports whether somebody has changed by hand what the change would revert: nobody asks for anything new then.
func (f *facts) storedByHand(c change.Change) bool {
	switch {
	case f.Operation != OperationUpdate:
		return false
	case f.Repairs != nil && f.Repairs(f.New.Object, c):
		return true
	}

	edits, _ := allowance.ParseStored(f.Old) // What does not parse is reported when it is written.

	return slices.ContainsFunc(edits, func(e v1alpha1.HeldChange) bool { return f.relatedToEdit(c, e) })
}

// sinceNow is since the last change of the parent, of what of it has not settled.
func (g *judged) sinceNow() allowance.Since {
	if g.unreadable {
		return always()
	}

	if len(g.unseen()) > 0 {
		out := allowance.NewSince(g.lastOfParent(), g.storedFields())
		out.Edited = true

		return out
	}

	if g.revised() {
		return allowance.Since{At: g.lastOfParent(), Edited: true}
	}

	of := append(g.storedFields(), unsettled(g.Parent)...)
	if g.Edited != nil {
		of = append(of, g.Edited()...)
	}

	return allowance.NewSince(g.lastOfParent(), of)
}

// unseen are the edits that somebody has stored in the parent who may not, and that its controller may not have looked at before: it
// may be these that what it asks for now follows from.
func (g *grants) unseen() []v1alpha1.HeldChange {
	if len(g.edited) == 0 || resource.IsClaim(g.Parent) {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(g.edited), func(e v1alpha1.HeldChange) bool {
		return e.At != "" && g.lookedAt(e.At)
	})
}

// lookedAt reports whether the parent's controller has looked at it since one of its changes.
func (g *grants) lookedAt(id string) bool {
	seen := allowance.ID(resource.ObservedGeneration(g.Parent), math.MaxInt64)
	if p, reports := resource.ProgressOf(g.Parent); reports {
		seen = allowance.ID(p.Generation, p.Request)
	}

	return allowance.CompareID(id, seen) <= 0
}

// perhapsEdited reports whether a change that was not held before may follow from what somebody has stored in the parent who may not:
// as far as the policy that gave an allowance knows, or as it did not come up when the controller looked at what gave the allowance.
func (j *judge) perhapsEdited(a v1alpha1.Allowance, c change.Change) bool {
	unseen := j.unseen()
	if len(unseen) == 0 || allowance.OfApproval(a) || allowance.ByDeletion(a) || j.storedByHand(c) {
		return false
	}

	p, before := j.Policies.ByName(a.Policy), j.ParentSettles && j.lookedAt(a.ID)

	return slices.ContainsFunc(unseen, func(e v1alpha1.HeldChange) bool {
		if e.At != "" && allowance.Repeats(a, e.At, placeOfEdit(e)) { // A replay has it though another policy allows that edit.
			return false
		}

		_, err := fieldpath.Parse(e.Field)

		return before || p == nil || err != nil || p.About(j.Parent.GroupVersionKind().GroupKind(), e.Field)
	})
}

// perhapsRevised reports whether a change that was not held before may follow from an update of the parent's Composition: it did not come
// up when that looked at what gave the allowance, and does now.
func (j *judge) perhapsRevised(a v1alpha1.Allowance, c change.Change) bool {
	return !allowance.OfApproval(a) && !allowance.ByDeletion(a) && j.lookedAt(a.ID) && j.revised() && !j.storedByHand(c)
}

// revised reports whether the parent is an XR, of which the function reports, and composed by another revision than when it did last.
func (g *grants) revised() bool { return g.ParentSettles && resource.Revised(g.Parent) }

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
func (s *stamper) writeWithheld(rec *v1alpha1.ObjectRecord) {
	if s.unreadable || s.Operation != OperationUpdate || s.Parent == nil {
		return
	}

	next, _ := allowance.ReadWithheld(rec.Withheld) // It is readable.
	if len(next) > 0 {
		next = next.Without(s.storedPlaces())
	}

	if s.action == v1alpha1.ActionHold && s.Action == "" && s.asksForParent() {
		next = s.asksNow(rec, next)
	}

	if len(next) == 0 {
		rec.Withheld, rec.Asked = nil, v1alpha1.Asker{}
	} else if record := next.Record(); !slices.EqualFunc(rec.Withheld, record, sameWithheld) {
		rec.Withheld = record
	}
}

// asksNow is what is withheld after a write of what carries on what the parent asks for.
func (s *stamper) asksNow(rec *v1alpha1.ObjectRecord, had allowance.Withheld) allowance.Withheld {
	now := v1alpha1.Asker{By: fmt.Sprintf("%08x", wish.Hash(s.User.Name+"\x00"+s.FieldManager)>>halfOfHash), At: s.lastOfParent()}

	if s.answeredHeld() { // It is no change any more.
		given, _ := allowance.ParseRecord(s.asked) // Made up, if it does not parse.
		answered, _ := allowance.ReadWithheld(given.Withheld)
		had = had.With(answered)

		if len(answered) > 0 {
			rec.Asked = now
		}
	}

	was := rec.Asked
	if len(s.next) > 0 {
		rec.Asked = now
	}

	if was.By == now.By && was.At != now.At {
		return s.next
	}

	return had.With(s.next)
}

const halfOfHash = 32

// storedPlaces are the places of the changes that pass. A list without keys is that of all that is in it, which may be held still.
func (s *stamper) storedPlaces() []allowance.Place {
	changes := change.Between(s.Old.Object, s.object.Object)
	out := make([]allowance.Place, 0, len(changes))

	for _, c := range changes {
		if place := s.placeOf(c); len(place) == len(c.Path) {
			out = append(out, place)
		}
	}

	return out
}

// asksForParent reports whether the writer carries on what the parent asks for.
func (l *lineage) asksForParent() bool {
	if resource.IsComposite(l.Parent) {
		return l.byCrossplane()
	}

	return l.User.Machine()
}

func sameWithheld(a, b v1alpha1.WithheldPlaces) bool {
	return a.At == b.At && a.Edited == b.Edited && a.Places == b.Places && slices.Equal(a.Of, b.Of)
}
