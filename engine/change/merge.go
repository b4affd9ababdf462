// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// merger walks two values at once and decides at every leaf that differs
// whether the old one stays.
type merger struct {
	hold func(Change) bool
	keys listKeys
	path Path
	// held is true once anything is.
	held bool
	// gone and joined are above zero inside an element of one version only.
	gone, joined int
	// places are of the elements on the path that stood elsewhere in the old object.
	places []placed
}

func (m *merger) push(s fieldpath.Segment) { m.path = append(m.path, s) }

func (m *merger) pop() { m.path = m.path[:len(m.path)-1] }

// entry merges one map entry into out.
func (m *merger) entry(key string, oldVal, newVal any, out *entries) {
	m.push(fieldpath.Segment{Type: fieldpath.SegmentField, Field: key})

	v, present, same := m.value(oldVal, newVal)

	m.pop()

	switch {
	case same:
	case present:
		out.set(key, v)
	default:
		out.remove(key)
	}
}

// element merges one list element.
func (m *merger) element(i int, oldVal, newVal any) (v any, present, same bool) {
	m.push(fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(i)})
	defer m.pop()

	return m.value(oldVal, newVal)
}

// value merges two values. Present is false where the result is no value, and
// same is true where it is the new one. A null is nothing.
func (m *merger) value(oldVal, newVal any) (v any, present, same bool) {
	if newVal == nil && oldVal == nil {
		return nil, false, true
	}

	switch n := newVal.(type) {
	case map[string]any:
		if o, ok := oldVal.(map[string]any); ok {
			return m.maps(o, n)
		}

		if oldVal == nil && size(n) > 0 {
			return emptied(m.maps(nil, n))
		}
	case []any:
		if o, ok := oldVal.([]any); ok {
			return m.lists(o, n)
		}

		if oldVal == nil && size(n) > 0 {
			return emptied(m.lists(nil, n))
		}
	case nil:
		return m.removed(oldVal)
	}

	return m.leaf(oldVal, newVal)
}

func (m *merger) leaf(oldVal, newVal any) (v any, present, same bool) {
	if Equal(oldVal, newVal) {
		return newVal, newVal != nil, true
	}

	c := Change{Path: slices.Clone(m.path), Was: m.was(), From: oldVal, To: newVal, Gone: m.gone > 0, Joined: m.joined > 0}
	c.Field = c.Path.String()

	if m.hold(c) {
		m.held = true

		return oldVal, oldVal != nil, false
	}

	return newVal, newVal != nil, true
}

func (m *merger) maps(o, n map[string]any) (v any, present, same bool) {
	if one(o, n) {
		return n, true, true
	}

	out, both := entries{from: n}, 0

	for key, was := range o {
		is, ok := n[key]
		if ok {
			both++
		}

		if !sameScalar(was, is) {
			m.entry(key, was, is, &out)
		}
	}

	if both == len(n) {
		return out.result(), true, !out.changed
	}

	for key, is := range n {
		if _, ok := o[key]; !ok {
			m.entry(key, nil, is, &out)
		}
	}

	return out.result(), true, !out.changed
}

// sameScalar reports whether two values are surely equal, at a glance.
func sameScalar(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)

		return ok && x == y
	case int64:
		y, ok := b.(int64)

		return ok && x == y
	case bool:
		y, ok := b.(bool)

		return ok && x == y
	default:
		return false
	}
}

// emptied is the merged value of a map or list that has no old version: it is
// there as far as anything in it is.
func emptied(v any, _, same bool) (any, bool, bool) {
	if same {
		return v, true, true
	}

	return v, size(v) > 0, false
}

// removed merges a value that has no new version.
func (m *merger) removed(oldVal any) (v any, present, same bool) {
	if size(oldVal) == 0 {
		return m.leaf(oldVal, nil)
	}

	switch o := oldVal.(type) {
	case map[string]any:
		v, _, same = m.maps(o, nil)
	case []any:
		v, _, same = m.lists(o, nil)
	}

	if same || size(v) == 0 {
		return nil, false, same
	}

	return v, true, false
}

// size is how many entries a map or list has that are something.
func size(v any) int {
	n := 0

	switch t := v.(type) {
	case map[string]any:
		for _, e := range t {
			if e != nil {
				n++
			}
		}
	case []any:
		for _, e := range t {
			if e != nil {
				n++
			}
		}
	}

	return n
}
