// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// mergeLists merges lists whose elements have managers one by one: by key, or
// by value where the list is a set. False for a list that is replaced as a
// whole.
func mergeLists(live, desired []any, fields Fields) ([]any, bool) {
	if keys := fields.Keys(); len(keys) > 0 {
		return mergeKeyed(live, desired, fields, keys), true
	}

	if fields.Values() {
		return mergeSets(live, desired, fields), true
	}

	return nil, false
}

// mergeSets merges lists whose elements are their own keys: those that are desired,
// in the order in which they are, and live ones less those that the manager had.
func mergeSets(live, desired []any, fields Fields) []any {
	place, at := make([]int, len(desired)), change.Find(live)
	for i, d := range desired {
		place[i] = at(d)
	}

	return Interleave(live, desired, place, func(j int) bool { return !fields.Own.Members.Has(Value(live[j])) })
}

// mergeKeyed merges a list whose elements have keys: those that are desired, in the
// order in which they are, and live ones less those that the manager had.
func mergeKeyed(live, desired []any, fields Fields, keys []string) []any {
	place := Match(desired, live, keys, fields)
	merged := slices.Clone(desired)

	for i, j := range place {
		if j >= 0 {
			merged[i], _ = mergeElement(live[j], desired[i], fields.Below(Element(live[j], keys)))
		}
	}

	return Interleave(live, merged, place, func(j int) bool {
		pe := Element(live[j], keys)

		return !fields.Own.Members.Has(pe) && fields.Below(pe).none()
	})
}

// Interleave puts live elements that stay between those that are desired, each
// behind the one that it is behind now. Place says where the desired ones are in
// the live list, or -1.
func Interleave(live, desired []any, place []int, stays func(j int) bool) []any {
	behind := make(map[int][]any, len(live)) // By the place of a desired element, or -1.
	last := -1

	taken := make([]bool, len(live))
	for _, j := range place {
		if j >= 0 {
			taken[j] = true
		}
	}

	for j, l := range live {
		switch {
		case taken[j]:
			last = j
		case stays(j):
			behind[last] = append(behind[last], l)
		}
	}

	out := append(make([]any, 0, len(live)+len(desired)), behind[-1]...)

	for i, d := range desired {
		out = append(out, d)
		if j := place[i]; j >= 0 {
			out = append(out, behind[j]...)
		}
	}

	return out
}

func mergeElement(live, desired any, fields Fields) (any, bool) {
	l, lok := live.(map[string]any)
	d, dok := desired.(map[string]any)

	if !lok || !dok {
		return desired, false
	}

	return mergeMaps(l, d, fields)
}

// Match finds for each desired element the live one with the same keys, or -1.
// A key that a desired element leaves out has a default that the live one shows.
// So where there is another one, it is not one whose key the manager gave itself.
func Match(desired, live []any, keys []string, fields Fields) []int {
	m := matching{desired: desired, live: live, of: make([]int, len(desired)), taken: make([]bool, len(live))}
	places := make(map[string]int, len(live))

	for j, l := range live {
		places[keyOf(l, keys)] = j
	}

	partial := false

	for i, d := range desired {
		m.of[i] = -1

		if j, ok := places[keyOf(d, keys)]; ok {
			m.take(i, j)
		}

		partial = partial || m.of[i] < 0 && !hasAll(d, keys)
	}

	if partial {
		m.rest(func(d, l any) bool { return !hasAll(d, keys) && sameKeys(d, l, keys) && !fields.gives(d, l, keys) })
		m.rest(func(d, l any) bool { return !hasAll(d, keys) && sameKeys(d, l, keys) })
	}

	return m.of
}

// matching is which live element each desired one is, or -1.
type matching struct {
	desired, live []any
	of            []int
	taken         []bool
}

func (m *matching) take(i, j int) {
	if !m.taken[j] {
		m.of[i], m.taken[j] = j, true
	}
}

// rest finds the first live element that is left for each desired one that has
// none.
func (m *matching) rest(same func(desired, live any) bool) {
	for i, d := range m.desired {
		for j, l := range m.live {
			if m.of[i] < 0 && !m.taken[j] && same(d, l) {
				m.take(i, j)
			}
		}
	}
}

// gives reports whether the manager itself gave a live element a key that a desired
// one leaves out.
func (f Fields) gives(desired, live any, keys []string) bool {
	d, _ := desired.(map[string]any)
	below := f.Below(Element(live, keys))

	return slices.ContainsFunc(keys, func(k string) bool { return d[k] == nil && below.Own.Members.Has(Field(k)) })
}

func hasAll(e any, keys []string) bool {
	m, _ := e.(map[string]any)

	return !slices.ContainsFunc(keys, func(k string) bool { return m[k] == nil })
}

// sameKeys reports whether a desired element has the keys of a live one; those it
// leaves out may be any.
func sameKeys(desired, live any, keys []string) bool {
	d, _ := desired.(map[string]any)
	l, _ := live.(map[string]any)
	has := false

	for _, k := range keys {
		switch v := d[k]; {
		case v == nil:
		case !change.Equal(v, l[k]):
			return false
		default:
			has = true
		}
	}

	return has
}

func keyOf(e any, keys []string) string {
	m, _ := e.(map[string]any)
	parts := make([]string, 0, len(keys))

	for _, k := range keys {
		parts = append(parts, fmt.Sprint(m[k]))
	}

	return strings.Join(parts, "\x00")
}
