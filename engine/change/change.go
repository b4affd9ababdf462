// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"maps"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// metadata is the name of the field.
const metadata = "metadata"

// Change is one difference between two versions of an object.
type Change struct {
	// Path of the changed leaf; the index of a list element is the one in the
	// new object, or in the old one where the element is gone.
	Path Path
	// Was is the path that the leaf had in the old object, where an element that
	// it is in has moved; nil where it is Path.
	Was Path
	// Field is Path as text.
	Field string
	// From is the old value, nil when the field is added.
	From any
	// To is the new value, nil when the field is removed.
	To any
	// Gone is true in an element that its list no longer has: the last index
	// in Path is then the one in the old object.
	Gone bool
	// Joined is true in an element that its list, which was there, did not have
	// before.
	Joined bool
}

// CoveredBy reports whether a pattern, as text, covers the change. A place in a list
// is that of an element which stands there before and after.
func (c Change) CoveredBy(pattern string) bool {
	return CoversText(pattern, c.Path) && (c.Was == nil || CoversText(pattern, c.Was))
}

// Removal reports whether the field is gone from the new object.
func (c Change) Removal() bool { return c.To == nil }

// Addition reports whether the field was not in the old object.
func (c Change) Addition() bool { return c.From == nil }

// Same reports whether two changes between the same versions are one. Their
// fields alone do not say: index 0 may be a new object's first element, or the
// one that an old object had there.
func (c Change) Same(o Change) bool { return Compare(c, o) == 0 }

// Metadata reports whether the change is below metadata.
func (c Change) Metadata() bool {
	return len(c.Path) > 0 && c.Path[0].Type == fieldpath.SegmentField && c.Path[0].Field == metadata
}

// List is the path, as text, of the first list that the change is in; empty
// where it is in none.
func (c Change) List() string {
	i := slices.IndexFunc(c.Path, func(s fieldpath.Segment) bool { return s.Type == fieldpath.SegmentIndex })
	if i < 0 {
		return ""
	}

	return c.Path[:i].String()
}

// Element is the path of the innermost list element that the change is in; empty
// where it is in none.
func (c Change) Element() Path {
	for i, s := range slices.Backward(c.Path) {
		if s.Type == fieldpath.SegmentIndex {
			return c.Path[:i+1]
		}
	}

	return nil
}

// Create is the change that makes an object.
func Create() Change { return pseudo(v1alpha1.MutationCreate) }

// Delete is the change that deletes an object.
func Delete() Change { return pseudo(v1alpha1.MutationDelete) }

func pseudo(name string) Change {
	return Change{Path: Path{fieldpath.Field(name)}, Field: name}
}

// Between returns the changes from one version of an object to another, sorted
// by field. Left out are apiVersion, kind and status, and of metadata all but
// labels, annotations, finalizers and ownerReferences. Lists are matched by the
// keys that the old object's managedFields show, or else by unique names. Neither
// object is modified; either may be nil.
func Between(oldObj, newObj map[string]any) []Change {
	var changes []Change

	Merge(oldObj, newObj, func(c Change) bool {
		changes = append(changes, c)

		return false
	})

	slices.SortFunc(changes, Order)

	return changes
}

func gone(c Change) int {
	if c.Gone {
		return 1
	}

	return 0
}

// Merge returns the new version with every change for which hold is true kept
// at its old value. Neither object is modified; the result may share parts of
// both, and is the new one where nothing is held. A removed list element that
// is held keeps its place where it can. Hold is asked once for each change, in
// no particular order.
func Merge(oldObj, newObj map[string]any, hold func(Change) bool) map[string]any {
	m := merger{hold: hold, keys: managedKeys(oldObj)}
	m.path = make(Path, 0, usualDepth)

	out := m.object(oldObj, newObj)
	if !m.held {
		return newObj
	}

	return out
}

// usualDepth is how deep objects are as a rule.
const usualDepth = 16

// object merges whole objects.
func (m *merger) object(oldObj, newObj map[string]any) map[string]any {
	out := entries{from: newObj}

	for key, o := range oldObj {
		if key != metadata && counts(key) {
			m.entry(key, o, newObj[key], &out)
		}
	}

	for key, n := range newObj {
		if _, ok := oldObj[key]; !ok && key != metadata && counts(key) {
			m.entry(key, nil, n, &out)
		}
	}

	m.metadata(oldObj, newObj, &out)

	return out.result()
}

// counts reports whether what is below a top-level field is anybody's wish.
func counts(key string) bool { return key != "apiVersion" && key != "kind" && key != "status" }

// metadata merges the parts of metadata that people and controllers decide on.
func (m *merger) metadata(oldObj, newObj map[string]any, out *entries) {
	oldMeta, _ := oldObj[metadata].(map[string]any)
	newMeta, _ := newObj[metadata].(map[string]any)
	meta := entries{from: newMeta}

	m.push(fieldpath.Segment{Type: fieldpath.SegmentField, Field: metadata})

	for _, key := range [...]string{"annotations", "finalizers", "labels", "ownerReferences"} {
		m.entry(key, oldMeta[key], newMeta[key], &meta)
	}

	m.pop()

	if meta.changed {
		out.set(metadata, meta.result())
	}
}

// entries is a map that is copied when it is first changed.
type entries struct {
	from, own map[string]any
	changed   bool
}

func (e *entries) set(key string, v any) {
	e.copy()
	e.own[key] = v
}

func (e *entries) remove(key string) {
	e.copy()
	delete(e.own, key)
}

func (e *entries) copy() {
	if e.changed {
		return
	}

	e.changed = true
	if e.own = maps.Clone(e.from); e.own == nil {
		e.own = map[string]any{}
	}
}

func (e *entries) result() map[string]any {
	if e.changed {
		return e.own
	}

	return e.from
}
