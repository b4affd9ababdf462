// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Whoever changed a root without being allowed to, and then adds what was missing,
// such as the ticket, or stores the same once more, makes that change again: the
// record of edits shows which it was. A change of somebody else is not theirs to
// complete. What is taken back needs nobody to allow it, for nothing follows from it.

// Earlier is what is known of the unallowed changes that an object stores.
type Earlier struct {
	// Restored are those that the request takes back.
	Restored []v1alpha1.HeldChange
	// Repeated are those that its user makes once more, and before is the old object as it was before these; nil
	// without any.
	Repeated []change.Change
	Before   *unstructured.Unstructured
	// Approved are those among them that people have approved.
	Approved []approvedEdit
}

// readEarlier reads which edits of the object the request takes back, and which changes
// of the user it makes again, of a root: what is composed is changed by its XR.
func readEarlier(o request.Objects, by request.Writer, how request.Manner, approved []request.ApprovedEdit) Earlier {
	if o.Operation != request.OperationUpdate || !o.Root && !o.OrdinaryPart() || how.Caller == request.Function {
		return Earlier{}
	}

	edits, err := allowance.ParseStored(o.Old)
	if err != nil || len(edits) == 0 {
		return Earlier{} // What is not understood is reported when they are written.
	}

	if len(approved) > 0 {
		return readApproved(o.Old, edits, approved) // Nobody makes anything else once more.
	}

	var out Earlier

	before := o.Old.DeepCopy()

	for _, e := range edits {
		was, is, ok := pathsOf(o, e)
		if !ok {
			continue // Another element may be in that place now.
		}

		if touches(o, was, is) {
			if AsBefore(o, e) {
				out.Restored = append(out.Restored, e)
			}

			continue
		}

		if c, ok := madeAgain(o, by, e, is); o.Root && ok && len(was) > 0 && setField(before, was, c.From) {
			out.Repeated, out.Before = append(out.Repeated, c), before
		}
	}

	return out
}

// pathsOf is where an edit is, in the old object and in the new one; nil in one that does not have its element. False where
// another element of a list may be in that place.
func pathsOf(o request.Objects, e v1alpha1.HeldChange) (was, is change.Path, ok bool) {
	was, _ = request.EditedPath(o.Old.Object, e)
	is, _ = request.EditedPath(o.New.Object, e)

	return was, is, e.Stored.Where == "" && !request.Indexed(was) || e.Stored.Where != "" && request.WhereIn(e.Stored.Where).Keyed()
}

// madeAgain returns the change that an edit was, where the user made it and the
// value before is known.
func madeAgain(o request.Objects, by request.Writer, e v1alpha1.HeldChange, path change.Path) (change.Change, bool) {
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
func touches(o request.Objects, was, is change.Path) bool {
	from, had := was.In(o.Old.Object)
	to, has := is.In(o.New.Object)

	return had != has || !change.Equal(from, to)
}

// TakesBack reports whether a change takes an edit back.
func TakesBack(o request.Objects, places *request.Places, earlier Earlier, c change.Change) bool {
	list, unkeyed := places.OfList(o, c)

	return slices.ContainsFunc(earlier.Restored, func(e v1alpha1.HeldChange) bool {
		return places.SameEdit(c, e) || unkeyed && places.SameEdit(list, e)
	})
}

// readApproved reads which edits people have approved: these are made once more. Before them is the old
// object, as far as it is known what was there.
func readApproved(old *unstructured.Unstructured, edits []v1alpha1.HeldChange, approved []request.ApprovedEdit) Earlier {
	var out Earlier

	before := old.DeepCopy()

	for _, e := range edits {
		is, made := recordedEdit(old, e)

		i := slices.IndexFunc(approved, func(a request.ApprovedEdit) bool { return is.Digest != "" && a.Digest == is.Digest })
		if i < 0 {
			continue
		}

		if !e.Masked && e.Stored.From == "" {
			setField(before, made.Path, made.From)
		}

		out.Repeated, out.Before = append(out.Repeated, made), before
		out.Approved = append(out.Approved, approvedEdit{approved[i], made.Field})
	}

	return out
}

// approvedEdit is one by its field.
type approvedEdit struct {
	Edit  request.ApprovedEdit
	Field string
}
