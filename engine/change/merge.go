// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"
	"sort"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
)

// merger walks two values at once and decides at every leaf that differs
// whether the old one stays.
type merger struct {
	hold func(Change) bool
}

// field merges one map entry into out.
func (m merger) field(path Path, key string, oldMap, newMap, out map[string]any) {
	if v, ok := m.value(path, oldMap[key], newMap[key]); ok {
		out[key] = v
	} else {
		delete(out, key)
	}
}

// value merges two values; false means that there is none. A null is nothing.
func (m merger) value(path Path, oldVal, newVal any) (any, bool) {
	if newVal == nil && oldVal == nil {
		return nil, false
	}

	switch n := newVal.(type) {
	case map[string]any:
		if o, ok := oldVal.(map[string]any); ok {
			return m.maps(path, o, n), true
		}

		if oldVal == nil && len(n) > 0 {
			return m.addedMap(path, n)
		}
	case []any:
		if o, ok := oldVal.([]any); ok {
			return m.lists(path, o, n), true
		}

		if oldVal == nil && len(n) > 0 {
			return m.addedList(path, n)
		}
	case nil:
		return m.removed(path, oldVal)
	}

	return m.leaf(path, oldVal, newVal)
}

func (m merger) leaf(path Path, oldVal, newVal any) (any, bool) {
	if Equal(oldVal, newVal) {
		return newVal, newVal != nil
	}

	c := Change{Path: append(Path(nil), path...), From: oldVal, To: newVal}
	c.Field = c.Path.String()

	if m.hold(c) {
		return oldVal, oldVal != nil
	}

	return newVal, newVal != nil
}

func (m merger) maps(path Path, o, n map[string]any) map[string]any {
	out := make(map[string]any, len(n))

	for _, key := range unionKeys(o, n) {
		if v, ok := m.value(child(path, fieldpath.Field(key)), o[key], n[key]); ok {
			out[key] = v
		}
	}

	return out
}

// addedMap merges a map that has no old version: it is there as far as
// anything in it is.
func (m merger) addedMap(path Path, n map[string]any) (any, bool) {
	out := m.maps(path, nil, n)

	return out, len(out) > 0
}

func (m merger) addedList(path Path, n []any) (any, bool) {
	out := m.lists(path, nil, n)

	return out, len(out) > 0
}

// removed merges a value that has no new version.
func (m merger) removed(path Path, oldVal any) (any, bool) {
	switch o := oldVal.(type) {
	case map[string]any:
		if len(o) > 0 {
			out := m.maps(path, o, nil)

			return out, len(out) > 0
		}
	case []any:
		if len(o) > 0 {
			out := m.lists(path, o, nil)

			return out, len(out) > 0
		}
	}

	return m.leaf(path, oldVal, nil)
}

func (m merger) lists(path Path, o, n []any) []any {
	if keys, ok := listKeys(o, n); ok {
		return m.keyedLists(path, o, n, keys)
	}

	out := make([]any, 0, len(n))

	for i := range max(len(o), len(n)) {
		v, ok := m.value(child(path, fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(i)}), at(o, i), at(n, i))
		if ok || i < len(n) && n[i] == nil { // A null keeps its place.
			out = append(out, v)
		}
	}

	return out
}

// keyedLists merges lists whose elements have unique names: by name, in the
// new order, with what is kept of removed elements at its old place.
func (m merger) keyedLists(path Path, o, n []any, keys elementKeys) []any {
	out := make([]any, 0, len(n))

	for i, e := range n {
		var was any
		if j, ok := keys.old[keys.inNew[i]]; ok {
			was = o[j]
		}

		v, ok := m.value(child(path, fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(i)}), was, e)
		if ok && named(v) { // Without its name an added element is none.
			out = append(out, v)
		}
	}

	for j, e := range o {
		if _, ok := keys.newSet[keys.inOld[j]]; ok {
			continue
		}

		if _, ok := m.value(child(path, fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(j)}), e, nil); !ok {
			continue
		}

		place := min(j, len(out)) // A part of an element makes no sense: it stays whole.
		out = append(out[:place], append([]any{e}, out[place:]...)...)
	}

	return out
}

// elementKeys are the names of the elements of two versions of a list.
type elementKeys struct {
	inOld, inNew []string
	old          map[string]int
	newSet       map[string]struct{}
}

// listKeys returns the elements' names, and false where the lists have to be
// matched by index: an element without a name, or two with the same.
func listKeys(o, n []any) (elementKeys, bool) {
	k := elementKeys{old: make(map[string]int, len(o)), newSet: make(map[string]struct{}, len(n))}

	for i, e := range o {
		name, ok := elementName(e)
		if _, dup := k.old[name]; !ok || dup {
			return k, false
		}

		k.old[name] = i
		k.inOld = append(k.inOld, name)
	}

	for _, e := range n {
		name, ok := elementName(e)
		if _, dup := k.newSet[name]; !ok || dup {
			return k, false
		}

		k.newSet[name] = struct{}{}
		k.inNew = append(k.inNew, name)
	}

	return k, true
}

func elementName(e any) (string, bool) {
	m, ok := e.(map[string]any)
	if !ok {
		return "", false
	}

	name, ok := m["name"].(string)

	return name, ok
}

func named(e any) bool {
	_, ok := elementName(e)

	return ok
}

// Equal compares decoded JSON, numbers by value.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}

		for k, v := range x {
			w, ok := y[k]
			if !ok || !Equal(v, w) {
				return false
			}
		}

		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}

		for i := range x {
			if !Equal(x[i], y[i]) {
				return false
			}
		}

		return true
	default:
		return equalScalars(a, b)
	}
}

func equalScalars(a, b any) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}

	if a == b {
		return true
	}

	_, aint := a.(int64)
	if _, bint := b.(int64); aint && bint {
		return false // As floats, large ones that differ would be equal.
	}

	x, xok := float(a)
	y, yok := float(b)

	return xok && yok && x == y
}

func float(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	default:
		return 0, false
	}
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}

	return nil
}

func child(path Path, s fieldpath.Segment) Path {
	return append(slices.Clip(path), s)
}

func unionKeys(a, b map[string]any) []string {
	keys := make([]string, 0, max(len(a), len(b)))
	for k := range a {
		keys = append(keys, k)
	}

	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}

	sort.Strings(keys)

	return keys
}
