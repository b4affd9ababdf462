// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Same reports whether two records have the same of the leaf at a path of an
// object, or of the one that the path is in. Nil records have nothing.
func (r *Record) Same(o *Record, object map[string]any, at change.Path) bool {
	if r == nil || o == nil {
		return false
	}

	p, ok := pathIn(object, at)
	if !ok {
		return false
	}

	was, recorded := r.get(p)
	is, too := o.get(p)

	return recorded && too && was == is
}

// Reverts reports whether a change of the part at a path of an object, or of the leaf that the path is in, puts back what the
// record has and another one has too, and what is stored has not. Nil records have nothing.
func (r *Record) Reverts(o, stored *Record, f *Finder, object map[string]any, at change.Path) bool {
	p, ok := f.find(object, at)
	if !ok || r == nil || o == nil {
		return false
	}

	same, differs := true, false
	compare := func(leaf path) bool {
		was, recorded := r.get(leaf)
		is, too := o.get(leaf)
		have, there := stored.get(leaf)
		same, differs = same && recorded && too && was == is, differs || !there || have != is

		return recorded || too
	}

	if compare(p) {
		return same && differs
	}

	same, differs = true, false
	v, _ := at.In(object)
	walk(v, p, func(_ any, leaf path) { compare(leaf) })

	return same && differs
}

// Restore takes what another record has of the leaf at a path of an object, be
// it nothing; false where that changes nothing.
func (r *Record) Restore(from *Record, object map[string]any, at change.Path) bool {
	p, ok := pathIn(object, at)
	if !ok {
		return false
	}

	is, recorded := r.get(p)

	was, before := from.get(p)
	if recorded == before && is == was {
		return false
	}

	delete(r.leaves, p)
	r.keep(p, from)

	return true
}

// Forget drops the leaf at a path of an object; false where there is none.
func (r *Record) Forget(object map[string]any, at change.Path) bool {
	p, ok := pathIn(object, at)
	if _, recorded := r.get(p); !ok || !recorded {
		return false
	}

	delete(r.leaves, p)

	return true
}

// ForgetPart drops all leaves of a part of an object. A nil record has none.
func (r *Record) ForgetPart(object map[string]any, at change.Path) {
	p, ok := pathIn(object, at)
	if r == nil || !ok {
		return
	}

	v, _ := at.In(object)
	walk(v, p, func(_ any, leaf path) { delete(r.leaves, leaf) })
}

// pathIn is the path of a leaf; false where the object has none there.
func pathIn(object map[string]any, at change.Path) (path, bool) {
	return (*Finder)(nil).find(object, at)
}

// A Finder finds many paths in objects that nobody modifies, without looking at each list as often. A nil one looks.
type Finder struct{ lists map[*any][]string }

// segments are those of a list, which has elements.
func (f *Finder) segments(list []any) []string {
	if f == nil {
		return segments(list)
	}

	out, ok := f.lists[&list[0]]
	if !ok || len(out) != len(list) {
		if f.lists == nil {
			f.lists = map[*any][]string{}
		}

		out = segments(list)
		f.lists[&list[0]] = out
	}

	return out
}

// find is the path of a part of an object; false where the object has none there.
func (f *Finder) find(object map[string]any, at change.Path) (path, bool) {
	var v any = object

	p := root

	for _, segment := range at {
		switch t := v.(type) {
		case map[string]any:
			next, ok := t[segment.Field]
			if segment.Type != fieldpath.SegmentField || !ok {
				return 0, false
			}

			v, p = next, p.under(segment.Field)
		case []any:
			if !ofMaps(t) {
				return p, true
			}

			if segment.Type != fieldpath.SegmentIndex || segment.Index >= uint(len(t)) {
				return 0, false
			}

			v, p = t[segment.Index], p.under(f.segments(t)[segment.Index])
		default:
			return 0, false
		}
	}

	return p, true
}
