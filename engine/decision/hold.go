// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// holding takes back what is unallowed. What is allowed may rest on that, by a policy's
// expression, by its place in a list, or as a part of one choice: so it is judged again
// by the object that is left, until nothing more is held.
type holding struct {
	*judged

	// whole is the new object with all of its changes.
	whole *unstructured.Unstructured
}

// hold puts unallowed changes back to their old value, where that is the action.
func (g *judged) hold() *judged {
	if g.action != v1alpha1.ActionHold || g.Operation != OperationUpdate {
		return g
	}

	h := &holding{judged: g, whole: g.New}

	for h.takesMore() {
		h.judgeRest()
		h.dropIncomplete()
		h.holdBeside()
		h.holdElements()
		h.holdLists()
		h.holdChoices()
	}

	for _, f := range h.findings {
		if f.Verdict == Unallowed {
			c := HeldChange(f)
			if user := h.askedBy(f.Change); user != "" {
				c.Cause = &v1alpha1.Cause{Type: h.causeType(), User: user}
			}

			h.held = append(h.held, c)
		}
	}

	h.restoreManagementPolicies()
	h.recordEarlier()
	h.restoreWishes()

	return h.judged
}

// takesMore notes which changes are to be taken back, and reports whether these
// are more than before.
func (h *holding) takesMore() bool {
	before := len(h.back)
	h.back = h.back[:0]

	for _, f := range h.findings {
		if f.Verdict == Unallowed {
			h.back = append(h.back, f.Change)
		}
	}

	return len(h.back) > before
}

// judgeRest judges by the object that is left what the user may initiate: the other
// rules do not read it.
func (h *holding) judgeRest() {
	left := &unstructured.Unstructured{Object: change.Merge(h.Old.Object, h.whole.Object, h.takenBack)}
	cloneMetadata(left)

	h.judge = h.of(left)

	for i, f := range h.findings {
		switch {
		case f.Rule != RuleInitiate:
		case f.repeated:
			h.findings[i] = h.judgeRepetition(f.Change)
		default:
			h.findings[i] = h.find(f.Change)
		}
	}
}

// dropIncomplete has those stay as they are that lack something once other changes
// are taken back: what is made again, and what is taken back itself.
func (h *holding) dropIncomplete() {
	h.findings = slices.DeleteFunc(h.findings, func(f Finding) bool {
		return f.Verdict == Unallowed && (f.repeated || slices.ContainsFunc(h.repeated, f.Change.Same) || h.takesBack(f.Change))
	})
}

// holdBeside has changes of a list held too that are not allowed where they are
// once others of the same list are taken back: what is held moves them.
func (h *holding) holdBeside() {
	left := newJudge(h.within()) // It has its own elements at their places.
	left.changes = h.changes

	for _, c := range change.Between(h.Old.Object, h.New.Object) {
		if h.exempt(c) || h.takesBack(c) {
			continue
		}

		f := left.find(c)
		if f.Verdict != Unallowed {
			continue
		}

		list := c.List()

		for i, other := range h.findings {
			if other.Verdict == Allowed && list != "" && other.Change.List() == list {
				h.findings[i] = h.lacking(other.Change, f.Lacks)
			}
		}
	}
}

// holdElements has what is allowed of an element that is to go held too, once other
// parts of it are: it stays whole.
func (h *holding) holdElements() {
	for i, f := range h.findings {
		if f.Verdict != Allowed || !f.Change.Gone {
			continue
		}

		for _, other := range h.findings {
			if other.Verdict == Unallowed && other.Change.Gone && together(f.Change.Element(), other.Change.Element()) {
				h.findings[i] = h.lacking(f.Change, other.Lacks)

				break
			}
		}
	}
}

// holdLists has what is allowed of a list without keys held too, once other parts of it are: with these left out, its elements
// would be others than anybody asked for.
func (h *holding) holdLists() {
	held := map[string][]Lack{}

	for _, f := range h.findings {
		if f.Verdict == Unallowed {
			list, _ := h.ofList(f.Change)
			held[list.Field] = f.Lacks
		}
	}

	for i, f := range h.findings {
		if list, in := h.ofList(f.Change); in && f.Verdict == Allowed {
			if lacks, ok := held[list.Field]; ok {
				h.findings[i] = h.lacking(f.Change, lacks)
			}
		}
	}
}

// together reports whether one of two elements is the other, or within it.
func together(a, b change.Path) bool {
	n := min(len(a), len(b))

	return slices.Equal(a[:n], b[:n])
}

// holdChoices has what is allowed of one choice held too, once other parts of it
// are: the API server refuses half of it, such as another strategy with the
// parameters of the old one. An element that takes the place of another one has its name, which both cannot have.
func (h *holding) holdChoices() {
	for i, f := range h.findings {
		if f.Verdict != Allowed {
			continue
		}

		for _, other := range h.findings {
			if other.Verdict == Unallowed && (h.oneChoice(f.Change, other.Change) || h.oneName(f.Change, other.Change)) {
				h.findings[i] = h.lacking(f.Change, other.Lacks)

				break
			}
		}
	}
}

// recordEarlier repeats the record of what was held before and still is.
func (h *holding) recordEarlier() {
	h.recordAnswered()
	h.recordAsked()

	slices.SortFunc(h.held, func(a, b v1alpha1.HeldChange) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
}

// recordAnswered repeats the record of what we held when we were asked about the
// same request before: it is no change any more.
func (h *holding) recordAnswered() {
	if !h.answeredHeld() {
		return
	}

	given, err := allowance.ParseHeld(h.asked)
	if err != nil {
		return // Made up, and not recorded.
	}

	was := h.held

	for _, c := range given {
		have, _ := fieldpath.Value(h.New.Object, c.Field)
		_, order := have.([]any)                          // From is the old order of its keys.
		listed := order || strings.Contains(c.Field, "[") // What was asked for had another index.

		same := func(o v1alpha1.HeldChange) bool {
			o.At = c.At // It is noted later.

			return reflect.DeepEqual(o, c)
		}

		if !slices.ContainsFunc(was, same) && (listed || h.textAt(c.Field) == c.From) {
			h.held = append(h.held, c)
		}
	}
}

// answeredHeld reports whether the writer brings a record of what is held that is
// neither the object's nor the parent's: as a rule, our earlier answer.
func (f *facts) answeredHeld() bool {
	value := resource.Annotation(f.asked, v1alpha1.AnnotationHeld)
	if value == "" || value == resource.Annotation(f.Old, v1alpha1.AnnotationHeld) ||
		f.Parent != nil && value == resource.Annotation(f.Parent, v1alpha1.AnnotationHeld) {
		return false
	}

	given, err := allowance.ParseHeld(f.asked)
	was, _ := allowance.ParseHeld(f.Old) // Reported when it is written.

	return err != nil || len(given) > 0 && !reflect.DeepEqual(given, was) // What is stored may be all that differs.
}

// textAt is the value of a field of the new object as a record of it reads.
func (f *facts) textAt(field string) string {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return ""
	}

	v, _ := path.In(f.New.Object)

	return change.Text(mask.Value(path, v, f.between()...), maxHeldValue)
}

func (h *holding) recordsHeld(field string) bool {
	return slices.ContainsFunc(h.held, func(c v1alpha1.HeldChange) bool { return c.Field == field })
}

// recordAsked repeats the record of a change that an earlier request asked for and
// that the Claim still asks for: an XR is also written by controllers that do
// not carry the Claim's wishes.
func (h *holding) recordAsked() {
	if h.Parent == nil || !resource.BoundToClaim(h.New) {
		return
	}

	was, err := allowance.ParseHeld(h.New)
	if err != nil {
		h.problem(inObject(h.New, err))

		return
	}

	for _, c := range was {
		if !h.recordsHeld(c.Field) && h.stillAsked(c.Field) {
			h.held = append(h.held, c)
		}
	}
}

// stillAsked reports whether Claim and XR differ in a field. Crossplane copies a
// Claim's spec to the XR field by field.
func (h *holding) stillAsked(field string) bool {
	want, wanted := fieldpath.Value(h.Parent.Object, field)
	have, had := fieldpath.Value(h.New.Object, field)

	return wanted != had || !change.Equal(want, have)
}

// restoreManagementPolicies puts back what the Composition asked for before, where to ask for
// other actions is held.
func (h *holding) restoreManagementPolicies() {
	c, ok := h.policies()
	if ok && slices.ContainsFunc(h.back, c.Same) {
		was, _ := gate.ParseDesired(h.Old) // Both are understood, see policies.
		is, _ := gate.ParseDesired(h.New)
		is.Policies, is.Before = was.Policies, was.Before
		annotate(h.New, v1alpha1.AnnotationDesiredPolicies, gate.FormatDesired(is))
	}
}

// restoreWishes puts back the record of each wish that is held here, though a
// composition function let it through. It forgets one that is as it was: what is
// stored then has Crossplane as its manager, and would count as wished.
func (h *holding) restoreWishes() {
	if h.is == nil {
		return
	}

	restored := false

	for _, c := range h.back {
		object, at := h.asked.Object, c.Path
		if c.Gone || c.Removal() { // It is in the old object alone.
			if object = h.Old.Object; c.Was != nil {
				at = c.Was
			}
		}

		same := h.was.Same(h.is, object, at)
		if h.is.Restore(h.was, object, at) || same && h.is.Forget(object, at) {
			restored = true
		}
	}

	if !restored {
		return
	}

	withheld, first := wish.Withheld(h.New)
	text, second := h.is.Format(h.New.GetAPIVersion(), h.New.GetKind())
	text, third := wish.WithWithheld(text, h.New, withheld)

	if err := cmp.Or(first, second, third); err != nil {
		h.problem(inObject(h.New, err))
	}

	annotate(h.New, v1alpha1.AnnotationWish, text)
}
