// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Whoever changed a root without being allowed to, and then adds what was missing,
// such as the ticket, or stores the same once more, makes that change again: the
// record of edits shows which it was. A change of somebody else is not theirs to
// complete. What is taken back needs nobody to allow it, for nothing follows from it.

// readEdits reads which edits of the object the request takes back, and which changes
// of the user it makes again, of a root: what is composed is changed by its XR.
func (f *facts) readEdits() {
	root := f.root()
	if f.Operation != OperationUpdate || !root && !f.ordinaryPart() || f.Action != "" {
		return
	}

	edits, err := allowance.ParseStored(f.Old)
	if err != nil {
		return // Reported when they are written.
	}

	if len(edits) == 0 {
		return
	}

	before := f.Old.DeepCopy()
	f.readApproved(edits, before)

	if len(f.Approved) > 0 {
		return // Nobody makes anything else once more.
	}

	for _, e := range edits {
		was, is, ok := f.pathsOf(e)
		if !ok {
			continue // Another element may be in that place now.
		}

		if f.touches(was, is) {
			if f.asBefore(e) {
				f.restored = append(f.restored, e)
			}

			continue
		}

		if c, ok := f.madeAgain(e, is); root && ok && len(was) > 0 && setField(before, was, c.From) {
			f.repeated, f.unedited = append(f.repeated, c), before
		}
	}
}

// pathsOf is where an edit is, in the old object and in the new one; nil in one that does not have its element. False where
// another element of a list may be in that place.
func (f *facts) pathsOf(e v1alpha1.HeldChange) (was, is change.Path, ok bool) {
	was, _ = EditedPath(f.Old.Object, e)
	is, _ = EditedPath(f.New.Object, e)

	return was, is, e.Stored.Where == "" && !indexed(was) || e.Stored.Where != "" && whereIn(e.Stored.Where).keyed()
}

// madeAgain returns the change that an edit was, where the user made it and the
// value before is known.
func (f *facts) madeAgain(e v1alpha1.HeldChange, path change.Path) (change.Change, bool) {
	to, _ := path.In(f.New.Object)
	_, list := to.([]any)

	unknown := list && e.From != "" || e.Masked || e.Stored.From != ""
	if unknown || allowance.Author(e) != f.User.Name || e.Stored.UID != f.User.UID {
		return change.Change{}, false
	}

	from, ok := valueOf(e.From, to)

	return change.Change{Path: path, Field: path.String(), From: from, To: to}, ok && !change.Equal(from, to)
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

// setField gives a field a value; nil takes it away. False where it cannot.
func setField(u *unstructured.Unstructured, path change.Path, v any) bool {
	fields, ok := path.Fields()
	if !ok {
		return setInList(u, path, v)
	}

	if v == nil {
		unstructured.RemoveNestedField(u.Object, fields...)

		return true
	}

	return unstructured.SetNestedField(u.Object, v, fields...) == nil
}

// setInList does that where the path leads through a list, whose elements stay.
func setInList(u *unstructured.Unstructured, path change.Path, v any) bool {
	last := len(path) - 1
	in, _ := path[:last].In(u.Object)

	switch s := path[last]; in := in.(type) {
	case map[string]any:
		if v == nil {
			delete(in, s.Field)
		} else {
			in[s.Field] = v
		}

		return s.Type == fieldpath.SegmentField
	case []any:
		if s.Type != fieldpath.SegmentIndex || s.Index >= uint(len(in)) || v == nil {
			return false
		}

		in[s.Index] = v

		return true
	default:
		return false
	}
}

// touches reports whether the request changes what is at a path in the old object, and at another one in the new one.
func (f *facts) touches(was, is change.Path) bool {
	from, had := was.In(f.Old.Object)
	to, has := is.In(f.New.Object)

	return had != has || !change.Equal(from, to)
}

// takesBack reports whether a change takes an edit back.
func (x *exemptions) takesBack(c change.Change) bool {
	list, unkeyed := x.ofList(c)

	return slices.ContainsFunc(x.restored, func(e v1alpha1.HeldChange) bool { return x.edits(c, e) || unkeyed && x.edits(list, e) })
}

// editWarnings show what is taken back, and what still lacks something.
func (g *judged) editWarnings() []string {
	out := make([]string, 0, len(g.restored)+len(g.incomplete))
	object := fmt.Sprintf("%s %q", g.groupKind().Kind, resource.Name(g.target()))

	for _, e := range g.restored {
		out = append(out, message.First(
			fmt.Sprintf("%s: %s's edit of %s is reverted", object, allowance.Author(e), e.Field)))
	}

	for _, f := range g.incomplete {
		out = append(out, g.warning(f, fmt.Sprintf("your edit of %s is still saved, and will not be applied", f.Change.Field)))
	}

	return out
}
