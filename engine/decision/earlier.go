// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Whoever changed a root without being allowed to, and then adds what was missing,
// such as the ticket, or stores the same once more, makes that change again: the
// record of edits shows which it was. A change of somebody else is not theirs to
// complete. What is taken back needs nobody to allow it, for nothing follows from it.

// earlier is what is known of the unallowed changes that an object stores.
type earlier struct {
	// restored are those that the request takes back.
	restored []v1alpha1.HeldChange
	// repeated are those that its user makes once more, and before is the old object as it was before these; nil
	// without any.
	repeated []change.Change
	before   *unstructured.Unstructured
	// approved are those among them that people have approved.
	approved []approvedEdit
}

// readEarlier reads which edits of the object the request takes back, and which changes
// of the user it makes again, of a root: what is composed is changed by its XR.
func readEarlier(o objects, by writer, how manner, approved []ApprovedEdit) earlier {
	if o.Operation != OperationUpdate || !o.Root && !o.ordinaryPart() || how.Action != "" {
		return earlier{}
	}

	edits, err := allowance.ParseStored(o.Old)
	if err != nil || len(edits) == 0 {
		return earlier{} // What is not understood is reported when they are written.
	}

	if len(approved) > 0 {
		return readApproved(o.Old, edits, approved) // Nobody makes anything else once more.
	}

	var out earlier

	before := o.Old.DeepCopy()

	for _, e := range edits {
		was, is, ok := pathsOf(o, e)
		if !ok {
			continue // Another element may be in that place now.
		}

		if touches(o, was, is) {
			if asBefore(o, e) {
				out.restored = append(out.restored, e)
			}

			continue
		}

		if c, ok := madeAgain(o, by, e, is); o.Root && ok && len(was) > 0 && setField(before, was, c.From) {
			out.repeated, out.before = append(out.repeated, c), before
		}
	}

	return out
}

// pathsOf is where an edit is, in the old object and in the new one; nil in one that does not have its element. False where
// another element of a list may be in that place.
func pathsOf(o objects, e v1alpha1.HeldChange) (was, is change.Path, ok bool) {
	was, _ = EditedPath(o.Old.Object, e)
	is, _ = EditedPath(o.New.Object, e)

	return was, is, e.Stored.Where == "" && !indexed(was) || e.Stored.Where != "" && whereIn(e.Stored.Where).keyed()
}

// madeAgain returns the change that an edit was, where the user made it and the
// value before is known.
func madeAgain(o objects, by writer, e v1alpha1.HeldChange, path change.Path) (change.Change, bool) {
	to, _ := path.In(o.New.Object)
	_, list := to.([]any)

	unknown := list && e.From != "" || e.Masked || e.Stored.From != ""
	if unknown || allowance.Author(e) != by.User.Name || e.Stored.UID != by.User.UID {
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
func touches(o objects, was, is change.Path) bool {
	from, had := was.In(o.Old.Object)
	to, has := is.In(o.New.Object)

	return had != has || !change.Equal(from, to)
}

// takesBack reports whether a change takes an edit back.
func takesBack(o objects, places *places, earlier earlier, c change.Change) bool {
	list, unkeyed := places.ofList(o, c)

	return slices.ContainsFunc(earlier.restored, func(e v1alpha1.HeldChange) bool {
		return places.sameEdit(c, e) || unkeyed && places.sameEdit(list, e)
	})
}
