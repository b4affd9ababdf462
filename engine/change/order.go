// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// The elements of a list with keys are compared one by one, wherever they stand.
// Their order is one thing more that such a list says: init containers run in
// theirs, an environment variable may refer to those before it, and a Deployment
// replaces its pods where that of their containers changes. It is a change
// of the list itself, from keys to keys, and what an index names in a policy is the
// element that stands there before and after.

// placed is an element of a list that stood at another place of the old one.
type placed struct {
	depth int
	index uint
}

// moved notes that an element stands at another place than in the old list, until
// left. One that pushes another aside comes from behind the old list.
func (m *merger) moved(i int, match *matching) (leave func()) {
	from := match.oldOf[i]

	switch {
	case from == i || from < 0 && (i >= len(match.stays) || !match.stays[i]):
		return func() {}
	case from < 0:
		from = len(match.stays)
	}

	m.places = append(m.places, placed{depth: len(m.path), index: uint(from)})

	return func() { m.places = m.places[:len(m.places)-1] }
}

// was is the path of a leaf in the old object; nil where it is the same.
func (m *merger) was() Path {
	if len(m.places) == 0 {
		return nil
	}

	out := slices.Clone(m.path)
	for _, p := range m.places {
		out[p.depth].Index = p.index
	}

	return out
}

// reordered asks whether the elements that both lists have stay in their old order,
// and has them do so. Elements are those of the new list as merged, nil where there
// is nothing left of one.
func (m *merger) reordered(o, n, elements []any, match *matching) (held bool) {
	var places, order []int // Where such elements stand in the new list, and in which order they did.

	for i, from := range match.oldOf {
		if from >= 0 {
			places = append(places, i)
		}
	}

	order = slices.Clone(places)
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(match.oldOf[a], match.oldOf[b]) })

	if slices.Equal(order, places) {
		return false
	}

	c := Change{
		Path: slices.Clone(m.path), Was: m.was(), Gone: m.gone > 0, Joined: m.joined > 0,
		From: keysOf(o, match.names), To: keysOf(n, match.names),
	}
	c.Field = c.Path.String()

	if !m.hold(c) {
		return false
	}

	m.held = true

	was := slices.Clone(elements)
	for k, i := range places {
		elements[i] = was[order[k]]
	}

	return true
}

// Pattern is the field of the change as a policy may name it: an element that has
// moved has no place of its own.
func (c Change) Pattern() string {
	if c.Was == nil {
		return c.Field
	}

	out := slices.Clone(c.Path)
	for i := range out {
		if out[i] != c.Was[i] {
			out[i] = fieldpath.Field("*")
		}
	}

	return out.String()
}

// keysOf are the keys of a list's elements, in order.
func keysOf(list []any, names []string) []any {
	out := make([]any, 0, len(list))

	for _, e := range list {
		key, _ := keyOf(e, names)
		out = append(out, key)
	}

	return out
}

// Compare orders changes between the same versions: by field, and what is gone
// last.
func Compare(a, b Change) int {
	return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(gone(a), gone(b)))
}

// Order is [Compare] for lists of changes, which are always in the same order by it: where in a list an element that is gone and what
// is gone of one that has moved to its place have the same field, it is by where they stood before.
func Order(a, b Change) int {
	if n := Compare(a, b); n != 0 || a.Was == nil && b.Was == nil {
		return n
	}

	return cmp.Compare(a.Was.String(), b.Was.String())
}
