// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"maps"
	"slices"
	"sort"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// answer is the making of what is applied.
type answer struct {
	Comparison *Comparison

	record *Record
}

// versions are those of one part of the object: as wished, as compared, as it is
// stored, and as it is to be.
type versions struct {
	wish, same, stored, result any
}

// Answer returns what to apply so that the object becomes as decided, and the
// record of that. What is allowed or no change is applied as it is wished, what
// is held as it is stored, where the manager has it, and is left out otherwise:
// nothing is to become the manager's that is not.
func (c *Comparison) Answer(result map[string]any) (map[string]any, *Record) {
	a := &answer{Comparison: c, record: newRecord(c.in.Record.size())}
	a.record.baseline = c.Baseline
	out := maps.Clone(c.in.Wish.Object)
	top := place{fields: c.in.Fields, at: root}

	a.Comparison.each(func(key string) {
		v := versions{wish: c.in.Wish.Object[key], same: c.Object[key], stored: c.in.Stored.Object[key], result: result[key]}
		a.entry(out, key, v, top)
	})

	for key := range c.in.Stored.Object {
		if _, ok := c.in.Wish.Object[key]; !ok && key != "apiVersion" && key != "kind" && key != "status" && key != fieldMetadata {
			a.keep(out, key, result[key], top)
		}
	}

	return out, a.record
}

func (a *answer) entry(into map[string]any, key string, v versions, in place) {
	a.Comparison.at = append(a.Comparison.at, fieldpath.Field(key))
	defer func() { a.Comparison.at = a.Comparison.at[:len(a.Comparison.at)-1] }()

	if out, ok := a.value(v, in.in(key, v.stored)); ok {
		into[key] = out
	} else {
		delete(into, key)
	}
}

// keep puts into a map what is no longer wished and stays, as far as the manager
// has it.
func (a *answer) keep(into map[string]any, key string, result any, in place) {
	if result == nil || in.fields.Whole {
		return
	}

	if part, ok := managedfields.ExtractValue(result, managedfields.Field(key), in.fields); ok {
		into[key] = a.wished(part, in.at.under(key))

		for _, at := range append(under(in.aliases, key), in.at.under(key)) {
			a.recordKept(into[key], at)
		}
	}
}

// wished is a part of what is stored that was wished, without what the API server
// put into maps and lists that were wished empty: it is not the manager's.
func (a *answer) wished(stored any, at path) any {
	recorded, known := a.Comparison.in.Record.get(at)

	switch t := stored.(type) {
	case map[string]any:
		if known && recorded == hashOf(map[string]any{}) {
			return map[string]any{}
		}

		out := make(map[string]any, len(t))
		for key, v := range t {
			out[key] = a.wished(v, at.under(key))
		}

		return out
	case []any:
		if known && recorded == hashOf([]any{}) {
			return []any{}
		}

		if !ofMaps(t) {
			return t
		}

		out := make([]any, len(t))
		for i, segment := range segments(t) {
			out[i] = a.wished(t[i], at.under(segment))
		}

		return out
	default:
		return stored
	}
}

func (a *answer) value(v versions, p place) (any, bool) {
	switch wish := v.wish.(type) {
	case map[string]any:
		switch {
		case p.whole(wish):
		case len(wish) > 0:
			return a.fields(v, p)
		case !p.fields.Own.Empty():
			return a.emptied(v, p, a.fields)
		}
	case []any:
		switch {
		case p.whole(wish):
		case ofMaps(wish):
			return a.list(v, p)
		case len(wish) == 0 && !p.fields.Own.Empty():
			return a.emptied(v, p, a.list)
		}
	}

	return a.leaf(v, p)
}

// emptied answers what is wished to be empty, and of which the manager has parts
// that may have to stay.
func (a *answer) emptied(v versions, p place, parts func(versions, place) (any, bool)) (any, bool) {
	out, ok := parts(v, p)
	if !ok {
		a.recordAll(v.wish, p.at)

		return v.wish, true
	}

	a.record.keep(p.at, a.Comparison.in.Record)

	return out, true
}

// leaf answers what is applied as a whole.
func (a *answer) leaf(v versions, p place) (any, bool) {
	switch {
	case a.Comparison.left[p.at]:
		a.recordAll(v.wish, p.at)

		return nil, false
	case change.Equal(v.result, v.same), change.Equal(v.same, v.stored):
		a.recordAll(v.wish, p.at)

		return v.wish, true
	}

	a.recordParts(v, p.at)
	a.keepRemoved(v, append(p.aliases, p.at))

	switch held := change.Equal(v.result, v.stored); {
	case !held, !p.owns(v.wish) && p.fields.Values():
		return mine(v, p)
	case !p.own && !p.owns(v.wish):
		return nil, false
	case v.result == nil:
		return a.zero(p)
	default:
		return mine(v, p)
	}
}

// zero is the zero value that was wished, and that the API server did not store:
// left out, it would be nobody's, as if somebody had taken it away.
func (a *answer) zero(p place) (any, bool) {
	recorded, known := a.Comparison.in.Record.get(p.at)

	for _, v := range []any{false, "", int64(0), map[string]any{}} {
		if known && p.own && recorded == hashOf(v) {
			return v, true
		}
	}

	return nil, false
}

// mine is what is to be stored of a value that is applied as a whole: of a list
// whose elements are their own keys what the manager has, or wishes.
func mine(v versions, p place) (any, bool) {
	list, ok := v.result.([]any)
	if !ok || !p.fields.Values() {
		return v.result, v.result != nil
	}

	wish, _ := v.wish.([]any)
	wished := change.Find(wish)
	list = slices.DeleteFunc(slices.Clone(list), func(e any) bool {
		return !p.fields.Has(managedfields.Value(e)) && wished(e) < 0
	})

	return list, len(list) > 0
}

func (a *answer) fields(v versions, p place) (any, bool) {
	wish, _ := v.wish.(map[string]any)
	same, _ := v.same.(map[string]any)
	stored, _ := v.stored.(map[string]any)
	result, _ := v.result.(map[string]any)
	out := make(map[string]any, len(wish))

	// A map that is missing and stays so is not made by what is empty in it.
	if v.stored == nil && v.result == nil && len(same) > 0 {
		a.keepAll(wish, p.at)
		a.record.keep(p.at, a.Comparison.in.Record)

		return a.zero(p)
	}

	for _, key := range resource.Keys(wish) {
		if a.Comparison.skipped(key) {
			out[key] = wish[key]
		} else {
			a.entry(out, key, versions{wish: wish[key], same: same[key], stored: stored[key], result: result[key]}, p)
		}
	}

	for key := range stored {
		if _, ok := wish[key]; !ok && !a.Comparison.skipped(key) {
			a.keep(out, key, result[key], p)
		}
	}

	// Without a map that it has, the manager takes along what others have in it.
	return out, len(out) > 0 || p.member && v.stored != nil && v.result != nil
}

// part is an element of a list that is applied, and its place in the list that
// is to be.
type part struct {
	value any
	place int
}

// list answers a list whose elements have keys.
func (a *answer) list(v versions, p place) (any, bool) {
	wish, _ := v.wish.([]any)
	same, _ := v.same.([]any)
	stored, _ := v.stored.([]any)
	result, _ := v.result.([]any)
	keys := p.fields.Keys()

	if same == nil {
		same = wish
	}

	was, is, names := managedfields.Match(wish, stored, keys, p.fields), managedfields.Match(same, result, keys, p.fields), segments(wish)
	taken := make(map[int]bool, len(stored))

	var out []part

	for i := range wish {
		v := versions{wish: wish[i], same: same[i]}
		if was[i] >= 0 {
			v.stored, taken[was[i]] = stored[was[i]], true
		}

		if is[i] >= 0 {
			v.result = result[is[i]]
		}

		have, _ := v.stored.(map[string]any)
		if e, ok := a.element(v, p.element(v.stored, keys, names[i], aliases(have, was[i])...), keys); ok {
			out = append(out, part{value: e, place: is[i]})
		}
	}

	out = append(out, a.keptElements(stored, result, taken, p, keys)...)
	inOrder(out, len(wish) == len(out))

	list := make([]any, len(out))
	for i, e := range out {
		list[i] = e.value
	}

	return list, len(list) > 0
}

// element answers one element: a new one as a whole or not at all, and never its
// keys alone where the manager does not have it.
func (a *answer) element(v versions, p place, keys []string) (any, bool) {
	if v.stored == nil {
		if v.result == nil || !change.Equal(v.result, v.same) {
			a.keepAll(v.wish, p.at)

			return nil, false
		}

		a.recordAll(v.wish, p.at)

		return v.wish, true
	}

	out, _ := a.fields(v, p)
	m, _ := out.(map[string]any)
	wish, _ := v.wish.(map[string]any)
	rest := 0

	for key := range m {
		if !slices.Contains(keys, key) {
			rest++
		}
	}

	if rest == 0 && len(wish) > len(keys) && !p.own {
		return nil, false
	}

	return managedfields.WithKeys(m, v.stored, slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return wish[k] == nil })), true
}

// keptElements are those that are no longer wished and stay, as far as the
// manager has them.
func (a *answer) keptElements(stored, result []any, taken map[int]bool, p place, keys []string) []part {
	var out []part

	stays, names := managedfields.Match(stored, result, keys, p.fields), segments(stored)

	for j, e := range stored {
		if taken[j] || stays[j] < 0 || p.fields.Whole {
			continue
		}

		if kept, ok := managedfields.ExtractValue(result[stays[j]], managedfields.Element(e, keys), p.fields); ok {
			kept = a.wished(kept, p.at.under(names[j]))
			out = append(out, part{value: managedfields.WithKeys(kept, e, keys), place: stays[j]})
			a.recordKept(kept, p.at.under(names[j]))
		}
	}

	return out
}

// inOrder puts elements into the order in which they are to be stored, where
// that is not the one in which they are wished; asWished is true where all of
// them are.
func inOrder(list []part, asWished bool) {
	if asWished && sort.SliceIsSorted(list, func(i, j int) bool { return list[i].place < list[j].place }) {
		return
	}

	slices.SortStableFunc(list, func(x, y part) int { return x.place - y.place })
}
