// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"slices"
)

// matching says which elements of two versions of a list are the same.
type matching struct {
	names []string
	// oldOf is for each new element the index of the old one, or -1.
	oldOf []int
	// stays is for each old element whether there is a new one.
	stays []bool
}

// match finds the elements that are the same by the keys that the old object's
// managedFields show, or else by a unique name; nil where they have to be matched by index,
// or where that gives the same.
func (m *merger) match(o, n []any) *matching {
	if !objects(o) || !objects(n) {
		return nil
	}

	if names := m.keys(m.path); len(names) > 0 {
		if out, ok := matchBy(o, n, names); ok {
			return out
		}
	}

	out, _ := matchBy(o, n, []string{"name"})

	return out
}

// objects reports whether all elements are maps.
func objects(list []any) bool {
	return !slices.ContainsFunc(list, func(e any) bool {
		_, ok := e.(map[string]any)

		return !ok
	})
}

// matchBy matches elements by key fields; false where an element has none of
// them, or two have the same, and nothing where all stand at their places.
func matchBy(o, n []any, names []string) (*matching, bool) {
	if aligned(o, n, names) {
		return nil, true
	}

	places := make(map[string]int, len(o))

	for j, e := range o {
		key, ok := keyOf(e, names)
		if _, twice := places[key]; !ok || twice {
			return nil, false
		}

		places[key] = j
	}

	out := &matching{names: names, oldOf: make([]int, len(n)), stays: make([]bool, len(o))}
	seen := make(map[string]struct{}, len(n))

	for i, e := range n {
		key, ok := keyOf(e, names)
		if _, twice := seen[key]; !ok || twice {
			return nil, false
		}

		seen[key] = struct{}{}
		out.oldOf[i] = -1

		if j, ok := places[key]; ok {
			out.oldOf[i], out.stays[j] = j, true
		}
	}

	return out, true
}

// aligned reports whether two lists have the same keys at the same places.
func aligned(o, n []any, names []string) bool {
	if len(o) != len(n) {
		return false
	}

	for i := range o {
		was, _ := o[i].(map[string]any)
		is, _ := n[i].(map[string]any)
		found := false

		for _, name := range names {
			if !Equal(was[name], is[name]) {
				return false
			}

			found = found || is[name] != nil
		}

		if !found {
			return false
		}
	}

	return true
}

// keyOf is an element's key as text; false where it has none. A key of one
// name is a string, as a schema's may be made of numbers too.
func keyOf(e any, names []string) (string, bool) {
	m, _ := e.(map[string]any)

	if len(names) == 1 {
		if s, ok := m[names[0]].(string); ok {
			return s, true
		}

		if names[0] == "name" {
			return "", false
		}
	}

	values, found := make([]any, len(names)), false

	for i, name := range names {
		values[i] = m[name]
		found = found || values[i] != nil
	}

	raw, err := json.Marshal(values)

	return string(raw), found && err == nil
}

// whole reports whether what is merged of an element still has its keys.
func (k *matching) whole(merged, element any) bool {
	m, _ := merged.(map[string]any)
	e, _ := element.(map[string]any)

	return !slices.ContainsFunc(k.names, func(name string) bool { return e[name] != nil && m[name] == nil })
}
