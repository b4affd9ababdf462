// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// maxHeldValue is the most bytes of a value in a held record or a message.
const maxHeldValue = 128

// maxHeldReason is the most bytes of a reason in a held record: it quotes
// expressions, which may be as long as a policy.
const maxHeldReason = 1024

// HeldChange is the record of an unallowed change, without what only the
// object's readers may see.
func HeldChange(f Finding) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{
		Field:  f.Change.Field,
		From:   change.Text(mask.Value(f.Change.Path, f.Change.From, f.between...), maxHeldValue),
		To:     change.Text(mask.Value(f.Change.Path, f.Change.To, f.between...), maxHeldValue),
		Reason: change.Text(f.Missing(), maxHeldReason),
	}
}

// HeldBetween is the record of a change that is held for a reason of its own,
// between versions of an object.
func HeldBetween(c change.Change, reason string, objects ...map[string]any) v1alpha1.HeldChange {
	out := HeldChange(Finding{Change: c, between: objects})
	out.Reason = reason

	return out
}

// between are the objects that the changes of the request are between.
func (d *decider) between() []map[string]any {
	var out []map[string]any

	for _, u := range []*unstructured.Unstructured{d.Old, d.asked, d.New} {
		if u != nil {
			out = append(out, u.Object)
		}
	}

	return out
}

// keepHeld keeps the record of what was held before and still is.
func (d *decider) keepHeld() {
	d.keepAnswered()
	d.keepAsked()

	slices.SortFunc(d.decision.Held, func(a, b v1alpha1.HeldChange) int { return strings.Compare(a.Field, b.Field) })
}

// keepAnswered keeps the record of what we held when we were asked about the
// same request before: it is no change any more.
func (d *decider) keepAnswered() {
	if !d.answeredHeld() {
		return
	}

	given, err := allowance.ParseHeld(d.asked)
	if err != nil {
		return // Made up, and not kept.
	}

	was := d.decision.Held

	for _, h := range given {
		have, _ := fieldpath.Pave(d.New.Object).GetValue(h.Field)
		_, order := have.([]any)                          // From is the old order of its keys.
		listed := order || strings.Contains(h.Field, "[") // What was asked for had another index.

		if !slices.Contains(was, h) && (listed || d.textAt(h.Field) == h.From) {
			d.decision.Held = append(d.decision.Held, h)
		}
	}
}

// answeredHeld says whether the writer brings a record of what is held that is
// neither the object's nor the parent's: as a rule, our earlier answer.
func (d *decider) answeredHeld() bool {
	value := resource.Annotation(d.asked, v1alpha1.AnnotationHeld)

	return value != "" && value != resource.Annotation(d.Old, v1alpha1.AnnotationHeld) &&
		(d.Parent == nil || value != resource.Annotation(d.Parent, v1alpha1.AnnotationHeld))
}

// textAt is the value of a field of the new object as a record of it reads.
func (d *decider) textAt(field string) string {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return ""
	}

	v, _ := fieldpath.Pave(d.New.Object).GetValue(field)

	return change.Text(mask.Value(path, v, d.between()...), maxHeldValue)
}

func (d *decider) recordsHeld(field string) bool {
	return slices.ContainsFunc(d.decision.Held, func(h v1alpha1.HeldChange) bool { return h.Field == field })
}

// keepAsked keeps the record of a change that an earlier request asked for and
// that the Claim still asks for: an XR is also written by controllers that do
// not carry the Claim's wishes.
func (d *decider) keepAsked() {
	if d.Parent == nil || !resource.BoundToClaim(d.New) {
		return
	}

	was, err := allowance.ParseHeld(d.New)
	if err != nil {
		d.problem(inObject(d.New, err))

		return
	}

	for _, h := range was {
		if !d.recordsHeld(h.Field) && d.stillAsked(h.Field) {
			d.decision.Held = append(d.decision.Held, h)
		}
	}
}

// stillAsked says whether Claim and XR differ in a field. Crossplane copies a
// Claim's spec to the XR field by field.
func (d *decider) stillAsked(field string) bool {
	want, wantErr := fieldpath.Pave(d.Parent.Object).GetValue(field)
	have, haveErr := fieldpath.Pave(d.New.Object).GetValue(field)

	return (wantErr == nil) != (haveErr == nil) || !change.Equal(want, have)
}

// writeHeld records what is held, or that nothing is any more.
func (d *decider) writeHeld() {
	switch {
	case len(d.decision.Held) > 0:
		annotate(d.New, v1alpha1.AnnotationHeld, allowance.FormatList(allowance.ListHeld(d.decision.Held)))
	case d.decision.Action == v1alpha1.ActionHold || len(d.decision.Findings) > 0:
		annotate(d.New, v1alpha1.AnnotationHeld, "")
	}
}

// holdWhole has what is allowed of an element that is to go held too, once other
// parts of it are: it stays whole.
func (d *decider) holdWhole() {
	for i, f := range d.decision.Findings {
		if f.Verdict != Allowed || !f.Change.Gone {
			continue
		}

		for _, other := range d.decision.Findings {
			if other.Verdict == Unallowed && other.Change.Gone && together(f.Change.Element(), other.Change.Element()) {
				d.decision.Findings[i] = d.lacking(f.Change, other.Lacks)

				break
			}
		}
	}
}

// together says whether one of two elements is the other, or within it.
func together(a, b change.Path) bool {
	n := min(len(a), len(b))

	return slices.Equal(a[:n], b[:n])
}
