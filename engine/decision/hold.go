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

// hold takes back what is unallowed, where that is the action, and returns the inputs with the object that is left. What
// is allowed may rest on that, by a policy's expression, by its place in a list, or as a part of one choice: so it is
// judged again by the object that is left, until nothing more is held.
func hold(in *inputs, j *judged) *inputs {
	if j.action != v1alpha1.ActionHold || in.o.Operation != OperationUpdate {
		return in
	}

	// 1. Put back what is unallowed, and judge the rest by the object that is left, until nothing more is.
	left := in

	for takesMore(j) {
		left = withoutHeld(in, j)
		judgeRest(left, j)
		dropIncomplete(left.o, left.places, left.earlier, j)

		// What cannot be held in part is held as a whole.
		holdBeside(left, j)
		holdElements(left, j.findings)
		holdLists(left, j.findings)
		holdChoices(left, j)
	}

	// 2. Record what is held, and what was and still is.
	j.held = heldNow(left, j.findings)
	recordEarlier(left.o, left.problems, j)

	// 3. Put back our records of it.
	restoreManagementPolicies(left.o, j.back)
	restoreWishes(left.o, left.desired, left.problems, j.back)

	return left
}

// heldNow are the records of unallowed changes.
func heldNow(left *inputs, findings []Finding) []v1alpha1.HeldChange {
	var out []v1alpha1.HeldChange

	for _, f := range findings {
		if f.Verdict != Unallowed {
			continue
		}

		c := HeldChange(f)
		if user := askedBy(left.o, left.by, left.how, left.above, left.places, f.Change); user != "" {
			c.Cause = &v1alpha1.Cause{Type: causeType(left.o), User: user}
		}

		out = append(out, c)
	}

	return out
}

// takesMore notes which changes are to be taken back, and reports whether these
// are more than before.
func takesMore(j *judged) bool {
	before := len(j.back)
	j.back = j.back[:0]

	for _, f := range j.findings {
		if f.Verdict == Unallowed {
			j.back = append(j.back, f.Change)
		}
	}

	return len(j.back) > before
}

// withoutHeld are the inputs with what is left of the new object.
func withoutHeld(in *inputs, j *judged) *inputs {
	left := &unstructured.Unstructured{Object: change.Merge(in.o.Old.Object, j.whole.Object, j.takenBack)}
	cloneMetadata(left)

	return in.with(left)
}

// judgeRest judges by the object that is left what the user may initiate: the other
// rules do not read it.
func judgeRest(left *inputs, j *judged) {
	for i, f := range j.findings {
		switch {
		case f.Rule != RuleInitiate:
		case f.repeated:
			j.findings[i] = judgeRepetition(left, f.Change)
		default:
			j.findings[i] = find(left, f.Change)
		}
	}
}

// dropIncomplete has those stay as they are that lack something once other changes
// are taken back: what is made again, and what is taken back itself.
func dropIncomplete(o objects, places *places, earlier earlier, j *judged) {
	j.findings = slices.DeleteFunc(j.findings, func(f Finding) bool {
		return f.Verdict == Unallowed && (f.repeated || slices.ContainsFunc(earlier.repeated, f.Change.Same) ||
			takesBack(o, places, earlier, f.Change))
	})
}

// holdBeside has changes of a list held too that are not allowed where they are
// once others of the same list are taken back: what is held moves them.
func holdBeside(left *inputs, j *judged) {
	own := left.within() // It has its own elements at their places.

	for _, c := range change.Between(left.o.Old.Object, left.o.New.Object) {
		if exempt(left, c) || takesBack(left.o, left.places, left.earlier, c) {
			continue
		}

		f := find(own, c)
		if f.Verdict != Unallowed {
			continue
		}

		list := c.List()

		for i, other := range j.findings {
			if other.Verdict == Allowed && list != "" && other.Change.List() == list {
				j.findings[i] = left.unallowed(other.Change, f.Lacks)
			}
		}
	}
}

// holdElements has what is allowed of an element that is to go held too, once other
// parts of it are: it stays whole.
func holdElements(left *inputs, findings []Finding) {
	for i, f := range findings {
		if f.Verdict != Allowed || !f.Change.Gone {
			continue
		}

		for _, other := range findings {
			if other.Verdict == Unallowed && other.Change.Gone && together(f.Change.Element(), other.Change.Element()) {
				findings[i] = left.unallowed(f.Change, other.Lacks)

				break
			}
		}
	}
}

// holdLists has what is allowed of a list without keys held too, once other parts of it are: with these left out, its elements
// would be others than anybody asked for.
func holdLists(left *inputs, findings []Finding) {
	held := map[string][]Lack{}

	for _, f := range findings {
		if f.Verdict == Unallowed {
			list, _ := left.places.ofList(left.o, f.Change)
			held[list.Field] = f.Lacks
		}
	}

	for i, f := range findings {
		if list, in := left.places.ofList(left.o, f.Change); in && f.Verdict == Allowed {
			if lacks, ok := held[list.Field]; ok {
				findings[i] = left.unallowed(f.Change, lacks)
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
func holdChoices(left *inputs, j *judged) {
	for i, f := range j.findings {
		if f.Verdict != Allowed {
			continue
		}

		for _, other := range j.findings {
			if other.Verdict == Unallowed && (oneChoice(left.o.Old, j.whole, f.Change, other.Change) ||
				oneName(left.o.Old, j.whole, f.Change, other.Change)) {
				j.findings[i] = left.unallowed(f.Change, other.Lacks)

				break
			}
		}
	}
}

// recordEarlier repeats the record of what was held before and still is.
func recordEarlier(o objects, problems *problems, j *judged) {
	recordAnswered(o, j)
	recordAsked(o, problems, j)

	slices.SortFunc(j.held, func(a, b v1alpha1.HeldChange) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
}

// recordAnswered repeats the record of what we held when we were asked about the
// same request before: it is no change any more.
func recordAnswered(o objects, j *judged) {
	if !answeredHeld(o) {
		return
	}

	given, err := allowance.ParseHeld(o.Asked)
	if err != nil {
		return // Made up, and not recorded.
	}

	was := j.held

	for _, c := range given {
		have, _ := fieldpath.Value(o.New.Object, c.Field)
		_, order := have.([]any)                          // From is the old order of its keys.
		listed := order || strings.Contains(c.Field, "[") // What was asked for had another index.

		same := func(o v1alpha1.HeldChange) bool {
			o.At = c.At // It is noted later.

			return reflect.DeepEqual(o, c)
		}

		if !slices.ContainsFunc(was, same) && (listed || textAt(o, c.Field) == c.From) {
			j.held = append(j.held, c)
		}
	}
}

// answeredHeld reports whether the writer brings a record of what is held that is
// neither the object's nor the parent's: as a rule, our earlier answer.
func answeredHeld(o objects) bool {
	value := resource.Annotation(o.Asked, v1alpha1.AnnotationHeld)
	if value == "" || value == resource.Annotation(o.Old, v1alpha1.AnnotationHeld) ||
		o.Parent != nil && value == resource.Annotation(o.Parent, v1alpha1.AnnotationHeld) {
		return false
	}

	given, err := allowance.ParseHeld(o.Asked)
	was, _ := allowance.ParseHeld(o.Old) // Reported when it is written.

	return err != nil || len(given) > 0 && !reflect.DeepEqual(given, was) // What is stored may be all that differs.
}

// textAt is the value of a field of the new object as a record of it reads.
func textAt(o objects, field string) string {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return ""
	}

	v, _ := path.In(o.New.Object)

	return change.Text(mask.Value(path, v, o.between()...), maxHeldValue)
}

func (j *judged) recordsHeld(field string) bool {
	return slices.ContainsFunc(j.held, func(c v1alpha1.HeldChange) bool { return c.Field == field })
}

// recordAsked repeats the record of a change that an earlier request asked for and
// that the Claim still asks for: an XR is also written by controllers that do
// not carry the Claim's wishes.
func recordAsked(o objects, problems *problems, j *judged) {
	if o.Parent == nil || !resource.BoundToClaim(o.New) {
		return
	}

	was, err := allowance.ParseHeld(o.New)
	if err != nil {
		problems.add(inObject(o.New, err))

		return
	}

	for _, c := range was {
		if !j.recordsHeld(c.Field) && stillAsked(o, c.Field) {
			j.held = append(j.held, c)
		}
	}
}

// stillAsked reports whether Claim and XR differ in a field. Crossplane copies a
// Claim's spec to the XR field by field.
func stillAsked(o objects, field string) bool {
	want, wanted := fieldpath.Value(o.Parent.Object, field)
	have, had := fieldpath.Value(o.New.Object, field)

	return wanted != had || !change.Equal(want, have)
}

// restoreManagementPolicies puts back what the Composition asked for before, where to ask for
// other actions is held.
func restoreManagementPolicies(o objects, back []change.Change) {
	c, ok := changeOfPolicies(o)
	if ok && slices.ContainsFunc(back, c.Same) {
		was, _ := gate.ParseDesired(o.Old) // Both are understood, see policies.
		is, _ := gate.ParseDesired(o.New)
		is.Policies, is.Before = was.Policies, was.Before
		annotate(o.New, v1alpha1.AnnotationDesiredPolicies, gate.FormatDesired(is))
	}
}

// restoreWishes puts back the record of each wish that is held here, though a
// composition function let it through. It forgets one that is as it was: what is
// stored then has Crossplane as its manager, and would count as wished.
func restoreWishes(o objects, desired desired, problems *problems, back []change.Change) {
	if desired.is == nil {
		return
	}

	restored := false

	for _, c := range back {
		object, at := o.Asked.Object, c.Path
		if c.Gone || c.Removal() { // It is in the old object alone.
			if object = o.Old.Object; c.Was != nil {
				at = c.Was
			}
		}

		same := desired.was.Same(desired.is, object, at)
		if desired.is.Restore(desired.was, object, at) || same && desired.is.Forget(object, at) {
			restored = true
		}
	}

	if !restored {
		return
	}

	withheld, first := wish.Withheld(o.New)
	text, second := desired.is.Format(o.New.GetAPIVersion(), o.New.GetKind())
	text, third := wish.WithWithheld(text, o.New, withheld)

	if err := cmp.Or(first, second, third); err != nil {
		problems.add(inObject(o.New, err))
	}

	annotate(o.New, v1alpha1.AnnotationWish, text)
}
