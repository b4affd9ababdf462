// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// What is held is served by no allowance of a later change of the parent: see [allowance.Withheld]. Of what Crossplane copies
// from a Claim, the Claim's own record of edits says since when.

// readWithheld reads at which places changes of the object are held.
func (f *facts) readWithheld() {
	if f.Operation == OperationCreate {
		f.withheld = f.Withheld
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

	f.withheld, f.unreadable = first.And(second), cmp.Or(unparsed, unread, other) != nil
}

// heldSince returns since when a change is held that is asked for now; false where it is not, or was not before.
func (f *facts) heldSince(c change.Change) (allowance.Since, bool) {
	if f.Parent == nil {
		return allowance.Since{}, false
	}

	if resource.IsClaim(f.Parent) {
		return f.storedSince(c)
	}

	if f.unreadable {
		return always(), true
	}

	if len(f.withheld) == 0 {
		return allowance.Since{}, false
	}

	since, held := f.withheld.At(f.placeOf(c))
	if held && since.After(f.lastOfParent()) { // It is of another parent, from whose backup this one was made.
		since = always()
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

// storedSince returns since when a Claim has a value that it may not have.
func (f *facts) storedSince(c change.Change) (allowance.Since, bool) {
	for _, listed := range []bool{true, false} {
		for _, e := range f.edited {
			if listed && allowance.Related(e.Field, c.Field) || !listed && e.Field == unlisted {
				return allowance.NewSince(e.At, []string{e.Field}), true
			}
		}
	}

	return allowance.Since{}, false
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

// storedFields are the fields of the parent that somebody has changed who may not.
func (g *grants) storedFields() []string {
	out := make([]string, 0, len(g.edited))
	for _, e := range g.edited {
		out = append(out, e.Field)
	}

	return out
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

	if g.next = g.withheld.Next(holds, g.sinceNow(), g.UnknownCause); len(holds) == 0 {
		return g
	}

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
func (g *judged) storedByHand(c change.Change) bool {
	switch {
	case g.Operation != OperationUpdate:
		return false
	case g.Repairs != nil && g.Repairs(g.New.Object, c.Path):
		return true
	}

	edits, _ := allowance.ParseEdits(g.Old) // What does not parse is reported when it is written.

	return slices.ContainsFunc(edits, func(e v1alpha1.Edit) bool { return allowance.Related(e.Field, c.Field) })
}

// sinceNow is since the last change of the parent, of what of it has not settled.
func (g *judged) sinceNow() allowance.Since {
	if g.unreadable {
		return always()
	}

	return allowance.NewSince(g.lastOfParent(), append(g.storedFields(), unsettled(g.Parent)...))
}

// unsettled are the fields of an object whose change was allowed, and has not settled.
func unsettled(u *unstructured.Unstructured) []string {
	progress, reports := resource.ProgressOf(u)

	settled := progress.Settled
	if !reports {
		settled = v1alpha1.Settled{Generation: resource.ObservedGeneration(u)}
	}

	var out []string

	entries, _ := allowance.ParseTrace(u) // What does not parse is reported when it is written.
	for _, e := range entries {
		n := len(e.Trace)
		if e.Generation > settled.Generation || n > 0 && e.Generation == settled.Generation && e.Trace[n-1].Request > settled.Request {
			out = append(out, e.Field)
		}
	}

	return out
}

// Bars reports whether a change is held since before the change of the parent that gave an allowance.
func (f Finding) Bars(a v1alpha1.Allowance) bool {
	return f.since.At != "" && !f.since.Serves(a, f.stored)
}

// writeWithheld records what is withheld, of what no composition function records that. A user asks once, and nothing is held of
// that any more.
func (s *stamper) writeWithheld(rec *v1alpha1.ObjectRecord) {
	if s.unreadable || s.Operation != OperationUpdate || s.action != v1alpha1.ActionHold || s.Action != "" || s.Parent == nil ||
		resource.IsClaim(s.Parent) || resource.Annotation(s.object, v1alpha1.AnnotationWish) != "" || !s.asksForParent() {
		return
	}

	next := s.next
	if s.answeredHeld() { // It is no change any more.
		given, _ := allowance.ParseRecord(s.asked) // Made up, if it does not parse.
		had, _ := allowance.ReadWithheld(given.Withheld)
		next = had.And(next)
	}

	if !slices.EqualFunc(rec.Withheld, next.Record(), sameWithheld) {
		rec.Withheld = next.Record()
	}
}

// asksForParent reports whether the writer carries on what the parent asks for.
func (l *lineage) asksForParent() bool {
	if resource.IsComposite(l.Parent) {
		return l.byCrossplane()
	}

	return l.User.Machine()
}

func sameWithheld(a, b v1alpha1.WithheldPlaces) bool {
	return a.At == b.At && a.Places == b.Places && slices.Equal(a.Of, b.Of)
}
