// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// A Locator says where changes between two versions of an object are, whatever moves beside
// them: elements of lists by their keys. It is not safe for concurrent use.
type Locator struct {
	oldObj, newObj map[string]any
	keys           listKeys
	sum            func(was, is []any) string
	lists          map[string]*located
}

// located is what is known of one list.
type located struct {
	was, is []any
	// names of the keys of its elements; none where they have none.
	names []string
	// sum of both versions; empty where there are keys.
	sum string
}

// Keys are those of the elements of a list of the new object, in order, as [Change] has them of one whose order changes; nil where
// there are none.
func (l *Locator) Keys(path Path) any {
	list := listAt(l.newObj, path)
	if names := l.namesOf(path, list); len(list) > 0 && names != nil {
		return keysOf(list, names)
	}

	return nil
}

// namesOf are the names of the keys by which the elements of versions of a list are told apart; nil where they have none.
func (l *Locator) namesOf(path Path, versions ...[]any) []string {
	for _, names := range [][]string{l.keys(path), {"name"}} {
		if len(names) > 0 && !slices.ContainsFunc(versions, func(list []any) bool { return !unique(list, names) }) {
			return names
		}
	}

	return nil
}

// Unkeyed is an element of a list that has no keys: only its place says which it is, and
// only together with the whole list.
type Unkeyed struct {
	// Index of it, in the list that it is in: the new one, or the old one where it is gone.
	Index int `json:"index"`
	// List is what the Locator's sum makes of both versions of the list.
	List string `json:"list"`
}

// NewLocator makes one for two versions of an object, which are not modified; sum stands for
// two versions of a list without keys.
func NewLocator(oldObj, newObj map[string]any, sum func(was, is []any) string) *Locator {
	return &Locator{oldObj: oldObj, newObj: newObj, keys: managedKeys(oldObj), sum: sum, lists: map[string]*located{}}
}

// Elements is where a change is: of each segment of the path the name of a field, the keys of
// a list's element by name, or an [Unkeyed] where it has none.
func (l *Locator) Elements(c Change) []any {
	out := make([]any, 0, len(c.Path))
	gone := false // Inside an element that is gone, of which the new object says nothing.

	for i, s := range c.Path {
		if s.Type != fieldpath.SegmentIndex {
			out = append(out, s.Field)

			continue
		}

		in, was, is := l.list(c, i, gone), int(c.before(i + 1)[i].Index), int(s.Index)

		if gone = gone || c.Gone && in.lacks(was, is); gone {
			out = append(out, in.element(in.was, was))
		} else {
			out = append(out, in.element(in.is, is))
		}
	}

	return out
}

// list is what is known of the list that the first segments of a change's path lead to.
func (l *Locator) list(c Change, n int, gone bool) *located {
	was := c.before(n)

	key := was.String() + "\n"
	if !gone {
		key += c.Path[:n].String()
	}

	if out := l.lists[key]; out != nil {
		return out
	}

	out := &located{was: listAt(l.oldObj, was)}
	if !gone {
		out.is = listAt(l.newObj, c.Path[:n])
	}

	if out.names = l.namesOf(c.Path[:n], out.was, out.is); out.names == nil {
		out.sum = l.sum(out.was, out.is)
	}

	l.lists[key] = out

	return out
}

// lacks reports whether the new list has no such element as the old one has at a place: it would
// be at another one.
func (l *located) lacks(was, is int) bool {
	if is >= len(l.is) || l.names == nil {
		return is >= len(l.is)
	}

	if was >= len(l.was) {
		return false
	}

	a, _ := keyOf(l.was[was], l.names)
	b, _ := keyOf(l.is[is], l.names)

	return a != b
}

// element names an element of a version of the list.
func (l *located) element(in []any, index int) any {
	if l.names == nil || index >= len(in) {
		return Unkeyed{Index: index, List: l.sum}
	}

	m, _ := in[index].(map[string]any)
	key := make(map[string]any, len(l.names))

	for _, name := range l.names {
		if v, ok := m[name]; ok {
			key[name] = v
		}
	}

	return key
}

// before is the path of the first segments in the old object.
func (c Change) before(n int) Path {
	if c.Was != nil && len(c.Was) >= n {
		return c.Was[:n]
	}

	return c.Path[:n]
}

func listAt(obj map[string]any, path Path) []any {
	v, _ := path.In(obj)
	list, _ := v.([]any)

	return list
}

// unique reports whether the elements of a list all have keys, each its own.
func unique(list []any, names []string) bool {
	seen := make(map[string]struct{}, len(list))

	for _, e := range list {
		if _, ok := e.(map[string]any); !ok {
			return false
		}

		key, ok := keyOf(e, names)
		if _, twice := seen[key]; !ok || twice {
			return false
		}

		seen[key] = struct{}{}
	}

	return true
}

// Locate is the path in an object of what elements stand for, as [Locator.Elements] gives them. False where a list has no such
// element, or several.
func Locate(obj map[string]any, elements []any) (Path, bool) {
	out := make(Path, 0, len(elements))

	for _, e := range elements {
		switch e := e.(type) {
		case string:
			out = append(out, fieldpath.Field(e))
		case Unkeyed:
			out = append(out, index(e.Index))
		case map[string]any:
			i := withKey(listAt(obj, out), e)
			if i < 0 {
				return nil, false
			}

			out = append(out, index(i))
		default:
			return nil, false
		}
	}

	return out, true
}

func index(i int) fieldpath.Segment {
	return fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(max(i, 0))}
}

// withKey is the index of the one element that has a key; -1 where there is none, or there are several.
func withKey(list []any, key map[string]any) int {
	at := -1

	for i, e := range list {
		m, ok := e.(map[string]any)
		for name, v := range key {
			ok = ok && Equal(m[name], v)
		}

		switch {
		case !ok:
		case at >= 0:
			return -1
		default:
			at = i
		}
	}

	return at
}
