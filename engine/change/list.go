// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import "slices"

// lists merges two versions of a list: by key where the elements have keys,
// otherwise by index.
func (m *merger) lists(o, n []any) (v any, present, same bool) {
	if equalLists(o, n) {
		return n, true, true
	}

	if match := m.match(o, n); match != nil {
		return m.byKey(o, n, match)
	}

	return m.byIndex(o, n)
}

func (m *merger) byIndex(o, n []any) (v any, present, same bool) {
	var out []any // Nil while it is n.

	nulls := 0 // Of the old list, that keep the places of what is kept behind them.

	for i := range max(len(o), len(n)) {
		from, to := at(o, i), at(n, i)

		leave := m.enter(i >= len(n), o != nil && i >= len(o))
		e, there, kept := m.element(i, from, to)

		leave()

		if out == nil && !kept {
			out = append(make([]any, 0, len(n)), n[:min(i, len(n))]...)
		}

		switch {
		case there || i < len(n) && to == nil: // A null keeps its place.
			if out != nil {
				out = append(append(out, make([]any, nulls)...), e)
			}

			nulls = 0
		case i < len(o) && from == nil:
			nulls++
		}
	}

	if out == nil {
		return n, true, true
	}

	return out, true, false
}

// enter notes that an element is in one version only, until left.
func (m *merger) enter(gone, joined bool) (leave func()) {
	switch {
	case gone:
		m.gone++

		return func() { m.gone-- }
	case joined:
		m.joined++

		return func() { m.joined-- }
	default:
		return func() {}
	}
}

// byKey merges lists whose elements have keys: in the new order, with what is
// kept of removed elements at its old place.
func (m *merger) byKey(o, n []any, match *matching) (v any, present, same bool) {
	same = true
	merged := make([]any, len(n))

	for i, e := range n {
		var was any
		if j := match.oldOf[i]; j >= 0 {
			was = o[j]
		}

		leave, back := m.enter(false, o != nil && was == nil), m.moved(i, match)
		v, there, kept := m.element(i, was, e)

		back()
		leave()

		if there && match.whole(v, e) { // Without its key an added element is none.
			merged[i] = v
		}

		same = same && kept
	}

	same = !m.reordered(o, n, merged, match) && same
	out := slices.DeleteFunc(merged, func(v any) bool { return v == nil })

	kept := make([]int, 0, len(o))

	for j, e := range o {
		if match.stays[j] {
			continue
		}

		leave := m.enter(true, false)
		_, there, _ := m.element(j, e, nil)
		leave()

		if there {
			kept = append(kept, j)
		}
	}

	return insert(out, o, kept), true, same && len(kept) == 0
}

// insert puts old elements, as a whole, for a part of one makes no sense, into
// a list at their old places, or at its end.
func insert(list, old []any, kept []int) []any {
	if len(kept) == 0 {
		return list
	}

	out := make([]any, 0, len(list)+len(kept))

	for len(list) > 0 || len(kept) > 0 {
		if len(list) == 0 || len(kept) > 0 && kept[0] <= len(out) {
			out, kept = append(out, old[kept[0]]), kept[1:]
		} else {
			out, list = append(out, list[0]), list[1:]
		}
	}

	return out
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}

	return nil
}
