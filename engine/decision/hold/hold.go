// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hold takes back what is not allowed, where that is the action, and whatever cannot be held in part; and records since
// when it is held.
//
// Its files:
//   - hold.go: the old values of unallowed changes, and of what cannot be split from them, such as list elements ([TakeBack]); the record
//     of held changes, also of earlier requests; the wish records of the function, restored
//   - choice.go: fields that the API server accepts only together: one choice, such as the source of a volume, or two elements of one name
//   - withhold.go: since when each change is held ([Withhold]) and until when
//   - record.go: what the record of a held change says: values, reason, digest, user ([HeldChange])
package hold

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Taken is what is taken back of a request.
type Taken struct {
	// Changes that are taken back, in order.
	Changes []change.Change
	// Records of them, and of what was taken back before and is still asked for.
	Records []v1alpha1.HeldChange
	// Places at which changes are held now; nil for none.
	Places allowance.Withheld
}

// TakeBack takes back what is unallowed, where that is the action, and returns the inputs with the object that is left, and
// what it took. What is allowed may rest on that, by a policy's expression, by its place in a list, or as a part of one choice: so it is
// judged again by the object that is left, until nothing more is held.
func TakeBack(in *input.Inputs, j *rule.Judged) (*input.Inputs, *Taken) {
	if j.Action != v1alpha1.ActionHold || in.Objects.Operation != request.OperationUpdate {
		return in, &Taken{}
	}

	// 1. Put back what is unallowed, and judge the rest by the object that is left, until nothing more is.
	left, t := in, &Taken{}

	for takesMore(j.Findings, t) {
		left = withoutHeld(in, j.Whole, t.Changes)
		judgeRest(left, j)
		dropIncomplete(left.Objects, left.Places, left.Earlier, j)

		// What cannot be held in part is held as a whole.
		holdBeside(left, j)
		holdElements(left, j.Findings)
		holdLists(left, j.Findings)
		holdChoices(left, j)
	}

	// 2. Record what is held, and what was and still is.
	t.Records = heldNow(left, j.Findings)
	recordEarlier(left.Objects, left.Problems, t)

	// 3. Put back our records of it.
	restoreManagementPolicies(left.Objects, t.Changes)
	restoreWishes(left.Objects, left.Desired, left.Problems, t.Changes)

	return left, t
}

// heldNow are the records of unallowed changes.
func heldNow(left *input.Inputs, findings []finding.Finding) []v1alpha1.HeldChange {
	var out []v1alpha1.HeldChange

	for _, f := range findings {
		if f.Verdict != finding.Unallowed {
			continue
		}

		c := HeldChange(f)
		if user := askedBy(left.Objects, left.Writer, left.Manner, left.Above, left.Places, f.Change); user != "" {
			c.Cause = &v1alpha1.Cause{Type: CauseType(left.Objects), User: user}
		}

		out = append(out, c)
	}

	return out
}

// takesMore notes which changes are to be taken back, and reports whether these
// are more than before.
func takesMore(findings []finding.Finding, t *Taken) bool {
	before := len(t.Changes)
	t.Changes = t.Changes[:0]

	for _, f := range findings {
		if f.Verdict == finding.Unallowed {
			t.Changes = append(t.Changes, f.Change)
		}
	}

	return len(t.Changes) > before
}

// withoutHeld are the inputs with what is left of the new object.
func withoutHeld(in *input.Inputs, whole *unstructured.Unstructured, back []change.Change) *input.Inputs {
	taken := func(c change.Change) bool { return rule.TakenBack(back, c) }
	left := &unstructured.Unstructured{Object: change.Merge(in.Objects.Old.Object, whole.Object, taken)}
	input.CloneMetadata(left)

	return in.With(left)
}

// judgeRest judges by the object that is left what the user may initiate: the other
// rules do not read it.
func judgeRest(left *input.Inputs, j *rule.Judged) {
	for i, f := range j.Findings {
		switch {
		case f.Rule != finding.RuleInitiate:
		case f.Repeated:
			j.Findings[i] = rule.JudgeRepetition(left, f.Change)
		default:
			j.Findings[i] = rule.Find(left, f.Change)
		}
	}
}

// dropIncomplete has those stay as they are that lack something once other changes
// are taken back: what is made again, and what is taken back itself.
func dropIncomplete(o request.Objects, places *request.Places, earlier input.Earlier, j *rule.Judged) {
	j.Findings = slices.DeleteFunc(j.Findings, func(f finding.Finding) bool {
		return f.Verdict == finding.Unallowed && (f.Repeated || slices.ContainsFunc(earlier.Repeated, f.Change.Same) ||
			input.TakesBack(o, places, earlier, f.Change))
	})
}

// holdBeside has changes of a list held too that are not allowed where they are
// once others of the same list are taken back: what is held moves them.
func holdBeside(left *input.Inputs, j *rule.Judged) {
	own := left.Within() // It has its own elements at their places.

	for _, c := range change.Between(left.Objects.Old.Object, left.Objects.New.Object) {
		if rule.Exempt(left, c) || input.TakesBack(left.Objects, left.Places, left.Earlier, c) {
			continue
		}

		f := rule.Find(own, c)
		if f.Verdict != finding.Unallowed {
			continue
		}

		list := c.List()

		for i, other := range j.Findings {
			if other.Verdict == finding.Allowed && list != "" && other.Change.List() == list {
				j.Findings[i] = rule.Unallowed(left, other.Change, f.Lacks)
			}
		}
	}
}

// holdElements has what is allowed of an element that is to go held too, once other
// parts of it are: it stays whole.
func holdElements(left *input.Inputs, findings []finding.Finding) {
	for i, f := range findings {
		if f.Verdict != finding.Allowed || !f.Change.Gone {
			continue
		}

		for _, other := range findings {
			if other.Verdict == finding.Unallowed && other.Change.Gone && together(f.Change.Element(), other.Change.Element()) {
				findings[i] = rule.Unallowed(left, f.Change, other.Lacks)

				break
			}
		}
	}
}

// holdLists has what is allowed of a list without keys held too, once other parts of it are: with these left out, its elements
// would be others than anybody asked for.
func holdLists(left *input.Inputs, findings []finding.Finding) {
	held := map[string][]finding.Lack{}

	for _, f := range findings {
		if f.Verdict == finding.Unallowed {
			list, _ := left.Places.OfList(left.Objects, f.Change)
			held[list.Field] = f.Lacks
		}
	}

	for i, f := range findings {
		if list, in := left.Places.OfList(left.Objects, f.Change); in && f.Verdict == finding.Allowed {
			if lacks, ok := held[list.Field]; ok {
				findings[i] = rule.Unallowed(left, f.Change, lacks)
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
func holdChoices(left *input.Inputs, j *rule.Judged) {
	for i, f := range j.Findings {
		if f.Verdict != finding.Allowed {
			continue
		}

		for _, other := range j.Findings {
			if other.Verdict == finding.Unallowed && (oneChoice(left.Objects.Old, j.Whole, f.Change, other.Change) ||
				oneName(left.Objects.Old, j.Whole, f.Change, other.Change)) {
				j.Findings[i] = rule.Unallowed(left, f.Change, other.Lacks)

				break
			}
		}
	}
}

// recordEarlier repeats the record of what was held before and still is.
func recordEarlier(o request.Objects, problems *request.Problems, t *Taken) {
	recordAnswered(o, t)
	recordAsked(o, problems, t)

	slices.SortFunc(t.Records, func(a, b v1alpha1.HeldChange) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
}

// recordAnswered repeats the record of what we held when we were asked about the
// same request before: it is no change any more.
func recordAnswered(o request.Objects, t *Taken) {
	if !answeredHeld(o) {
		return
	}

	given, err := allowance.ParseHeld(o.Asked)
	if err != nil {
		return // Made up, and not recorded.
	}

	was := t.Records

	for _, c := range given {
		have, _ := fieldpath.Value(o.New.Object, c.Field)
		_, order := have.([]any)                          // From is the old order of its keys.
		listed := order || strings.Contains(c.Field, "[") // What was asked for had another index.

		same := func(o v1alpha1.HeldChange) bool {
			o.At = c.At // It is noted later.

			return reflect.DeepEqual(o, c)
		}

		if !slices.ContainsFunc(was, same) && (listed || textAt(o, c.Field) == c.From) {
			t.Records = append(t.Records, c)
		}
	}
}

// answeredHeld reports whether the writer brings a record of what is held that is
// neither the object's nor the parent's: as a rule, our earlier answer.
func answeredHeld(o request.Objects) bool {
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
func textAt(o request.Objects, field string) string {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return ""
	}

	v, _ := path.In(o.New.Object)

	return change.Text(mask.Value(path, v, o.Between()...), maxHeldValue)
}

// recordsOf reports whether a field's change is among records.
func recordsOf(records []v1alpha1.HeldChange, field string) bool {
	return slices.ContainsFunc(records, func(c v1alpha1.HeldChange) bool { return c.Field == field })
}

// recordAsked repeats the record of a change that an earlier request asked for and
// that the Claim still asks for: an XR is also written by controllers that do
// not carry the Claim's wishes.
func recordAsked(o request.Objects, problems *request.Problems, t *Taken) {
	if o.Parent == nil || !resource.BoundToClaim(o.New) {
		return
	}

	was, err := allowance.ParseHeld(o.New)
	if err != nil {
		problems.Add(request.InObject(o.New, err))

		return
	}

	for _, c := range was {
		if !recordsOf(t.Records, c.Field) && stillAsked(o, c.Field) {
			t.Records = append(t.Records, c)
		}
	}
}

// stillAsked reports whether Claim and XR differ in a field. Crossplane copies a
// Claim's spec to the XR field by field.
func stillAsked(o request.Objects, field string) bool {
	want, wanted := fieldpath.Value(o.Parent.Object, field)
	have, had := fieldpath.Value(o.New.Object, field)

	return wanted != had || !change.Equal(want, have)
}

// restoreManagementPolicies puts back what the Composition asked for before, where to ask for
// other actions is held.
func restoreManagementPolicies(o request.Objects, back []change.Change) {
	c, ok := rule.ChangeOfPolicies(o)
	if ok && slices.ContainsFunc(back, c.Same) {
		was, _ := management.ParseDesired(o.Old) // Without policies where it is not understood.
		is, _ := management.ParseDesired(o.New)
		is.Policies, is.Before = was.Policies, was.Before
		input.Annotate(o.New, v1alpha1.AnnotationDesiredPolicies, management.FormatDesired(is))
	}
}

// restoreWishes puts back the record of each wish that is held here, though a
// composition function let it through. It forgets one that is as it was: what is
// stored then has Crossplane as its manager, and would count as wished.
func restoreWishes(o request.Objects, desired input.Desired, problems *request.Problems, back []change.Change) {
	if desired.Is == nil {
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

		same := desired.Was.Same(desired.Is, object, at)
		if desired.Is.Restore(desired.Was, object, at) || same && desired.Is.Forget(object, at) {
			restored = true
		}
	}

	if !restored {
		return
	}

	withheld, first := wish.Withheld(o.New)
	text, second := desired.Is.Format(o.New.GetAPIVersion(), o.New.GetKind())
	text, third := wish.WithWithheld(text, o.New, withheld)

	if err := cmp.Or(first, second, third); err != nil {
		problems.Add(request.InObject(o.New, err))
	}

	input.Annotate(o.New, v1alpha1.AnnotationWish, text)
}
