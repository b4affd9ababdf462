// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Whoever changed a root without being allowed to, and then adds what was missing,
// such as the ticket, or stores the same once more, makes that change again: the
// record of edits tells which it was. A change of somebody else is not theirs to
// complete. What is taken back needs nobody to allow it, for nothing follows from it.

// readEdits reads which edits of the object the request takes back, and which changes
// of the user it makes again, of a root: what is composed is changed by its XR.
func (d *decider) readEdits() {
	root := d.root()
	if d.Operation != OperationUpdate || !root && !d.ordinaryPart() || d.Action != "" {
		return
	}

	edits, err := allowance.ParseEdits(d.Old)
	if err != nil {
		return // Reported when they are written.
	}

	if len(edits) == 0 {
		return
	}

	before := d.Old.DeepCopy()

	for _, e := range edits {
		path, err := fieldpath.Parse(e.Field)
		if err != nil || indexed(path) {
			continue // Another element may be in that place now.
		}

		if d.touches(e.Field) {
			if d.asBefore(e) {
				d.restored = append(d.restored, e)
			}

			continue
		}

		if c, ok := d.madeAgain(e, path); root && ok && setField(before, c.Field, c.From) == nil {
			d.again, d.stood = append(d.again, c), before
		}
	}
}

// indexed says whether a path leads through a list.
func indexed(path change.Path) bool {
	return slices.ContainsFunc(path, func(s fieldpath.Segment) bool { return s.Type == fieldpath.SegmentIndex })
}

// madeAgain returns the change that an edit was, where the user made it and it can
// be told what the value was before.
func (d *decider) madeAgain(e v1alpha1.Edit, path change.Path) (change.Change, bool) {
	if e.Masked || e.Digest != "" || e.User != d.User.Name || e.UID != d.User.UID {
		return change.Change{}, false
	}

	to, _ := fieldpath.Pave(d.New.Object).GetValue(e.Field)
	from, ok := valueOf(e.From, to)

	return change.Change{Path: path, Field: e.Field, From: from, To: to}, ok && !change.Equal(from, to)
}

// valueOf reads a value out of its text, see [change.Text], as one of the kind that
// another value has.
func valueOf(text string, like any) (any, bool) {
	if text == "" {
		return nil, true
	}

	if _, ok := like.(string); ok {
		return text, true
	}

	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text, like == nil
	}

	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		return int64(f), true
	}

	return v, true
}

// setField gives a field a value; nil takes it away.
func setField(u *unstructured.Unstructured, field string, v any) error {
	if v == nil {
		return fieldpath.Pave(u.Object).DeleteField(field) //nolint:wrapcheck // It counts as one that cannot be told.
	}

	return fieldpath.Pave(u.Object).SetValue(field, v) //nolint:wrapcheck // As above.
}

// touches says whether the request changes a field.
func (d *decider) touches(field string) bool {
	was, wasErr := fieldpath.Pave(d.Old.Object).GetValue(field)
	is, isErr := fieldpath.Pave(d.New.Object).GetValue(field)

	return (wasErr == nil) != (isErr == nil) || !change.Equal(was, is)
}

// takesBack says whether a change takes an edit back.
func (d *decider) takesBack(c change.Change) bool {
	return slices.ContainsFunc(d.restored, func(e v1alpha1.Edit) bool { return e.Field == c.Field })
}

// judgeAgain judges the changes that the request makes again. Those that still lack
// something stay as they are.
func (d *decider) judgeAgain() {
	for _, c := range d.again {
		f := d.judgedAgain(c)

		switch f.Verdict {
		case Allowed:
			d.decision.Findings = append(d.decision.Findings, f)
		case Unallowed:
			d.incomplete = append(d.incomplete, f)
		case Ungoverned: // Whoever takes the policy away need not know of it.
		}
	}
}

// judgedAgain judges a change that the request makes again.
func (d *decider) judgedAgain(c change.Change) Finding {
	d.before = d.stood
	defer func() { d.before = nil }()

	f := d.judge(c)
	f.again = true

	return f
}

// dropIncomplete has those stay as they are that lack something once other changes
// are taken back: what is made again, and what is taken back itself.
func (d *decider) dropIncomplete() {
	d.decision.Findings = slices.DeleteFunc(d.decision.Findings, func(f Finding) bool {
		return f.Verdict == Unallowed && (f.again || slices.ContainsFunc(d.again, f.Change.Same) || d.takesBack(f.Change))
	})
}

// input is what expressions see: before a change that is made again the object was
// as it was before that.
func (d *decider) input() policy.Input {
	in := d.Request.input()
	if d.before != nil {
		in.OldObject = d.before.Object
	}

	return in
}

// tellEdits tells what is taken back, and what still lacks something.
func (d *decider) tellEdits() {
	object := fmt.Sprintf("%s %q", d.groupKind().Kind, resource.Name(d.subject()))

	for _, e := range d.restored {
		d.decision.Warnings = append(d.decision.Warnings, fmt.Sprintf(
			"%s: the change of %s that %s stored is taken back", object, e.Field, e.User))
	}

	for _, f := range d.incomplete {
		d.decision.Warnings = append(d.decision.Warnings, fmt.Sprintf(
			"%s: %s is still as you stored it, and nothing may follow from it: %s", object, f.Change.Field, f.Missing()))
	}
}
