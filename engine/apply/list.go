// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

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

// mergeSets merges lists whose elements are their own keys: live ones, less
// those the manager had and no longer wants, and new ones.
func mergeSets(live, desired []any, fields Fields) []any {
	in := func(list []any, e any) bool {
		return slices.ContainsFunc(list, func(o any) bool { return change.Equal(o, e) })
	}

	var out, wanted []any

	for _, l := range live {
		switch {
		case in(desired, l):
			out, wanted = append(out, l), append(wanted, l)
		case !fields.Own.Members.Has(Value(l)):
			out = append(out, l)
		}
	}

	inOrder := slices.DeleteFunc(slices.Clone(desired), func(d any) bool { return !in(live, d) })
	if len(inOrder) == len(wanted) {
		replace(out, inOrder, func(e any) bool { return in(desired, e) })
	}

	for _, d := range desired {
		if !in(live, d) {
			out = append(out, d)
		}
	}

	return out
}

// replace puts elements, in their order, into the places of those that are to be
// replaced.
func replace(list, by []any, is func(any) bool) {
	for i, e := range list {
		if len(by) > 0 && is(e) {
			list[i], by = by[0], by[1:]
		}
	}
}

// mergeKeyed merges a list whose elements have keys: live ones, less those the
// manager had and no longer wants, and new ones at the end. Those that are
// desired stand in the order in which they are.
func mergeKeyed(live, desired []any, fields Fields, keys []string) []any {
	place := Match(desired, live, keys)
	taken := map[int]bool{}

	var wanted []any // Of the live ones, merged, in the order desired.

	for i, d := range desired {
		if j := place[i]; j >= 0 {
			taken[j] = true
			merged, _ := mergeElement(live[j], d, fields.Below(Element(live[j], keys)))
			wanted = append(wanted, merged)
		}
	}

	out := make([]any, 0, len(live)+len(desired))

	for j, l := range live {
		pe := Element(l, keys)

		switch {
		case taken[j]:
			out, wanted = append(out, wanted[0]), wanted[1:]
		case !fields.Own.Members.Has(pe) && fields.Below(pe).none():
			out = append(out, l)
		}
	}

	for i, d := range desired {
		if place[i] < 0 {
			out = append(out, d)
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
func Match(desired, live []any, keys []string) []int {
	out := make([]int, len(desired))
	taken := make([]bool, len(live))
	places := make(map[string]int, len(live))

	for j, l := range live {
		places[keyOf(l, keys)] = j
	}

	for i, d := range desired {
		out[i] = -1

		if j, ok := places[keyOf(d, keys)]; ok && !taken[j] {
			out[i], taken[j] = j, true
		}
	}

	for i, d := range desired {
		if out[i] >= 0 || hasAll(d, keys) {
			continue
		}

		for j, l := range live {
			if !taken[j] && sameKeys(d, l, keys) {
				out[i], taken[j] = j, true

				break
			}
		}
	}

	return out
}

func hasAll(e any, keys []string) bool {
	m, _ := e.(map[string]any)

	return !slices.ContainsFunc(keys, func(k string) bool { return m[k] == nil })
}

// sameKeys says whether a desired element has the keys of a live one; those it
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
