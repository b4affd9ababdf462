// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// A record names an element of a list by its index, and whether that was its place before the
// edit or is its place since the record does not say: where an element was taken out, another one
// has its index now, and where one replaced another the record has one value for both. So elements
// are never put back, taken away or made others, but only what is in them, and their order.

// restoredObject is an object with values from before; false where it cannot be told which elements
// of lists they are of.
func restoredObject(object map[string]any, list []putBack) (map[string]any, bool) {
	out := runtime.DeepCopyJSON(object)

	list = slices.Clone(list)
	slices.SortStableFunc(list, inOrder)

	for _, p := range list {
		if err := p.apply(out); err != nil {
			return nil, false
		}
	}

	for _, p := range list {
		if !sameElements(p.path, out, object) {
			return nil, false
		}
	}

	return out, true
}

// sameElements reports whether the objects in the lists that a path leads through are the same ones in
// two objects, by their names and places.
func sameElements(path fieldpath.Path, a, b map[string]any) bool {
	for i := firstIndex(path); i >= 0 && i < len(path); i++ {
		if path[i].Type != fieldpath.SegmentIndex {
			continue
		}

		first, _ := path[:i].In(a)
		second, _ := path[:i].In(b)
		was, holdFirst := elementNames(first)
		is, holdSecond := elementNames(second)

		if (holdFirst || holdSecond) && !reflect.DeepEqual(was, is) {
			return false
		}
	}

	return true
}

// elementNames are the names of the objects in a list, of one with nothing in it false; and whether
// there is an object or a list in it.
func elementNames(v any) (names []any, hold bool) {
	list, _ := v.([]any)
	names = make([]any, len(list))

	for i, e := range list {
		switch in := e.(type) {
		case map[string]any:
			names[i], hold = in["name"], true
			if len(in) == 0 {
				names[i] = false
			}
		case []any:
			hold = true
		}
	}

	return names, hold
}

// firstIndex is which segment of a path is the first that is an index; -1 for none.
func firstIndex(path fieldpath.Path) int {
	return slices.IndexFunc(path, func(s fieldpath.Segment) bool { return s.Type == fieldpath.SegmentIndex })
}

// reordered is a list of objects in the order from before, which is recorded as their names; false
// where it is about other elements than there are. Other lists are as they are recorded.
func reordered(now, value any) (any, bool) {
	list, _ := now.([]any)
	order, isList := value.([]any)

	names, hold := elementNames(now)
	if !isList || !hold {
		return value, true
	}

	if len(order) != len(list) {
		return nil, false
	}

	out := make([]any, len(order))

	for i, name := range order {
		text, ok := name.(string)
		at := slices.IndexFunc(names, func(o any) bool { return o == any(text) })

		if !ok || at < 0 {
			return nil, false
		}

		out[i], names[at] = list[at], nil // Each once.
	}

	return out, true
}
