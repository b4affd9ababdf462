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

// Reverts reports whether a change between two versions of an object puts back what the record has and another one has too, and what
// is stored has not: a leaf, all leaves of a part, or that there is nothing more in what is applied as a whole. Nil records have
// nothing.
func (r *Record) Reverts(o, stored *Record, f *Finder, was, is map[string]any, c change.Change) bool {
	if r == nil || o == nil {
		return false
	}

	if n := container(c); n > 0 {
		if list, ok := c.Path[:n].In(is); !ok || !scalars(list) {
			return r.adds(o, f, was, is, c, n)
		}
	}

	p, ok := f.find(is, c.Path)
	if !ok {
		return false
	}

	v, _ := c.Path.In(is)
	leaves, same := r.alike(o, p, v)
	differs := false

	each(p, v, func(leaf path) {
		have, there := stored.get(leaf)
		want, wished := o.get(leaf)
		differs = differs || wished && (!there || have != want)
	})

	return same && leaves > 0 && differs
}

// container is how much of the path of a change is of what something was taken out of: a list, or a map. Zero where nothing was.
func container(c change.Change) int {
	switch {
	case c.Gone:
		n := len(c.Path) - 1
		for n > 0 && c.Path[n].Type != fieldpath.SegmentIndex {
			n--
		}

		return n
	case c.Removal():
		return len(c.Path) - 1
	default:
		return 0
	}
}

// scalars reports whether a value is a list that is recorded as a whole.
func scalars(v any) bool {
	list, ok := v.([]any)

	return ok && !ofMaps(list)
}

// adds reports whether a change takes away what somebody has added to a part of an object: neither record has it, and both have
// the same of all that is left of the part.
func (r *Record) adds(o *Record, f *Finder, was, is map[string]any, c change.Change, n int) bool {
	at := c.Path
	if c.Was != nil {
		at = c.Was
	}

	if c.Gone { // The whole element is.
		at = at[:n+1]
	}

	p, ok := f.find(was, at)
	rest, left := f.find(is, c.Path[:n])

	if !ok || !left {
		return false
	}

	v, _ := at.In(was)
	unknown := true

	each(p, v, func(leaf path) {
		_, before := r.get(leaf)
		_, now := o.get(leaf)
		unknown = unknown && !before && !now
	})

	of, _ := c.Path[:n].In(is)
	leaves, same := r.alike(o, rest, of)

	return unknown && same && leaves > 0
}

// alike counts the leaves of a part that either record has, and reports whether both have the same of all of them.
func (r *Record) alike(o *Record, at path, v any) (leaves int, same bool) {
	same = true

	each(at, v, func(leaf path) {
		was, recorded := r.get(leaf)
		is, too := o.get(leaf)

		if recorded || too {
			leaves, same = leaves+1, same && was == is && recorded == too
		}
	})

	return leaves, same
}

// each calls a function with the path of a part, and those of all leaves in it.
func each(at path, v any, call func(path)) {
	call(at)
	walk(v, at, func(_ any, leaf path) {
		if leaf != at {
			call(leaf)
		}
	})
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
