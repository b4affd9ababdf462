// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Places say where changes between two versions of an object are.
type Places struct {
	old, is *unstructured.Unstructured
	// locator goes by what is not hidden of the versions, and keys by all of it; nil until they are asked for.
	locator, keys *change.Locator
}

// An element of a list is another one once others are put before it. So what is recorded of a change in a list says by its key
// in which element that is: where it is, as its indices are now, is found out by that.

// Where is where in an object a change is: the JSON of the names of fields, and in lists of the keys of elements, or of the
// index where they have none. It is nil where it leads through no element with a key: there the field says it.
type Where []string

// MaxWhere limits the bytes of where an edit is.
const MaxWhere = 1024

// WhereOf says where a change of the object is.
func (places *Places) WhereOf(c change.Change) Where {
	elements := places.elements(c)
	out := make(Where, len(elements))

	for i, e := range elements {
		if unkeyed, ok := e.(change.Unkeyed); ok {
			e = unkeyed.Index
		}

		raw, err := json.Marshal(e)
		if err != nil {
			return nil
		}

		out[i] = string(raw)
	}

	return out
}

// elements are the names of fields and the keys of elements that a change is in; nil where it leads through no element with a key.
func (places *Places) elements(c change.Change) []any {
	if !Indexed(c.Path) && !Indexed(c.Was) || places.old == nil || places.is == nil {
		return nil
	}

	out := places.byKeys().Elements(c)
	if !slices.ContainsFunc(out, func(e any) bool { _, keyed := e.(map[string]any); return keyed }) {
		return nil
	}

	return out
}

// NewPlaces are those of the changes of a request.
func NewPlaces(o Objects) *Places { return &Places{old: o.Old, is: o.New} }

// Locate says where changes of the object are, by what is not hidden of it.
func (places *Places) Locate() *change.Locator {
	if places.locator == nil {
		hide := func([]string, any) string { return mask.Text }
		was, is := mask.Object(places.old.Object, hide, places.is.Object), mask.Object(places.is.Object, hide, places.old.Object)
		places.locator = change.NewLocator(was, is, digest.OfLists)
	}

	return places.locator
}

// byKeys says where changes of the object are, by all of it.
func (places *Places) byKeys() *change.Locator {
	if places.keys == nil {
		places.keys = change.NewLocator(places.old.Object, places.is.Object, digest.OfLists)
	}

	return places.keys
}

// OfList is the change of a whole list that a change of an element is part of, where the elements have no keys: which of them is
// which nobody can say then. False where it is in no such list.
func (places *Places) OfList(o Objects, c change.Change) (change.Change, bool) {
	if !Indexed(c.Path) || o.Old == nil || o.New == nil {
		return c, false
	}

	i := slices.IndexFunc(places.byKeys().Elements(c), func(e any) bool { _, unkeyed := e.(change.Unkeyed); return unkeyed })
	if i < 0 {
		return c, false
	}

	out := change.Change{Path: c.Path[:i], Field: c.Path[:i].String()}

	was := out.Path
	if c.Was != nil {
		out.Was = c.Was[:min(i, len(c.Was))]
		was = out.Was
	}

	out.From, _ = was.In(o.Old.Object)
	out.To, _ = out.Path.In(o.New.Object)

	return out, true
}

// Indexed reports whether a path leads through a list.
func Indexed(path change.Path) bool {
	return slices.ContainsFunc(path, func(s fieldpath.Segment) bool { return s.Type == fieldpath.SegmentIndex })
}

// String is how it is recorded: as JSON.
func (w Where) String() string {
	if len(w) == 0 {
		return ""
	}

	raw := make([]json.RawMessage, len(w))
	for i, e := range w {
		raw[i] = json.RawMessage(e)
	}

	text, err := json.Marshal(raw)
	if err != nil {
		return ""
	}

	return string(text)
}

// Place of a change, as [v1alpha1.AllowanceSource.Place] has it.
func (places *Places) Place(c change.Change) string { return Place(places.elements(c)) }

// Place is the field that elements stand for, with hashes of keys; empty where there are none.
func Place(elements []any) string {
	out := make(change.Path, len(elements))

	for i, e := range elements {
		switch e := e.(type) {
		case string:
			out[i] = fieldpath.Field(e)
		case change.Unkeyed:
			out[i] = fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(max(e.Index, 0))}
		default:
			key, err := json.Marshal(e)
			if err != nil {
				return ""
			}

			out[i] = fieldpath.Field(fmt.Sprintf("@%08x", wish.Hash(string(key))>>HalfOfHash))
		}
	}

	return out.String()
}

// WhereIn reads what [Where.String] writes; nil where it is not.
func WhereIn(text string) Where {
	var raw []json.RawMessage
	if json.Unmarshal([]byte(text), &raw) != nil {
		return nil
	}

	out := make(Where, len(raw))
	for i, e := range raw {
		out[i] = string(e)
	}

	return out
}

// within reports whether it is the same place as another one, or within that.
func (w Where) within(other Where) bool {
	return len(w) >= len(other) && slices.Equal(w[:len(other)], other)
}

// in is the path that it is in an object; false where the object has no such element.
func (w Where) in(object map[string]any) (change.Path, bool) {
	elements, ok := w.Elements()
	if !ok {
		return nil, false
	}

	return change.Locate(object, elements)
}

// Elements are the names, keys and indices of what it leads through; false where it is not understood.
func (w Where) Elements() ([]any, bool) {
	out := make([]any, len(w))

	for i, text := range w {
		var e any
		if json.Unmarshal([]byte(text), &e) != nil {
			return nil, false
		}

		if index, ok := e.(float64); ok {
			e = change.Unkeyed{Index: int(index)}
		}

		out[i] = e
	}

	return out, true
}

// Keyed reports whether all elements that it leads through have keys.
func (w Where) Keyed() bool {
	return !slices.ContainsFunc(w, func(e string) bool { return e != "" && e[0] >= '0' && e[0] <= '9' })
}

// EditedPath is where an edit that is recorded of an object is in a version of that; false where that has no such element.
func EditedPath(object map[string]any, e v1alpha1.HeldChange) (change.Path, bool) {
	if e.Stored.Where != "" {
		return WhereIn(e.Stored.Where).in(object)
	}

	path, err := fieldpath.Parse(e.Field)

	return path, err == nil
}

// SameEdit reports whether a change is of what an edit is of.
func (places *Places) SameEdit(c change.Change, e v1alpha1.HeldChange) bool {
	if e.Stored.Where == "" {
		return e.Field == c.Field
	}

	return slices.Equal(places.WhereOf(c), WhereIn(e.Stored.Where))
}

// WithinEdit reports whether a change is of what an edit is of, or of a part of that.
func (places *Places) WithinEdit(c change.Change, e v1alpha1.HeldChange) bool {
	if e.Stored.Where == "" {
		return change.FieldCovers(e.Field, c.Path)
	}

	return places.WhereOf(c).within(WhereIn(e.Stored.Where))
}

// RelatedToEdit reports whether one of a change and an edit is the other, or within it.
func (places *Places) RelatedToEdit(c change.Change, e v1alpha1.HeldChange) bool {
	w := places.WhereOf(c)
	if e.Stored.Where == "" || w == nil {
		return allowance.Related(e.Field, c.Field)
	}

	of := WhereIn(e.Stored.Where)

	return w.within(of) || of.within(w)
}

// HeldPlace is where a change is. In a list whose elements have no keys that is the list.
func (places *Places) HeldPlace(o Objects, c change.Change) allowance.Place {
	switch {
	case c.Field == v1alpha1.MutationCreate:
		return PlaceOfCreation(o.ComposedName())
	case len(c.Path) == 0 || o.Old == nil || o.New == nil:
		return allowance.Place{c.Field}
	}

	out := make(allowance.Place, 0, len(c.Path))

	for _, e := range places.Locate().Elements(c) {
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

// HalfOfHash is the number of bits by which a hash is cut where a short one is enough.
const HalfOfHash = 32
