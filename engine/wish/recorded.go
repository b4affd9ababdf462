// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// recordAll records a part of the wish that is applied as wished.
func (a *answer) recordAll(wish any, at path) {
	walk(wish, at, func(v any, at path) { a.record.put(at, hashOf(v)) })
}

// keepAll repeats the record of a part of the wish that is held.
func (a *answer) keepAll(wish any, at path) {
	walk(wish, at, func(_ any, at path) { a.record.keep(at, a.Comparison.in.Record) })
}

// recordKept repeats the record of what is stored and no longer wished.
func (a *answer) recordKept(stored any, at path) { a.keepAll(stored, at) }

// recordParts records what is applied of a part as it is wished, and keeps the
// record of what is held in it.
func (a *answer) recordParts(v versions, at path) {
	if leaf(v.wish) {
		if change.Equal(v.result, v.same) || change.Equal(v.same, v.stored) {
			a.record.put(at, hashOf(v.wish))
		} else {
			a.record.keep(at, a.Comparison.in.Record)
		}

		return
	}

	if wish, ok := v.wish.(map[string]any); ok {
		same, _ := v.same.(map[string]any)
		stored, _ := v.stored.(map[string]any)
		result, _ := v.result.(map[string]any)

		for key, w := range wish {
			a.recordParts(versions{wish: w, same: same[key], stored: stored[key], result: result[key]}, at.under(key))
		}

		return
	}

	a.recordElements(v, at)
}

// keepRemoved repeats the record of what of a part that is applied as a whole is
// no longer wished, and stays.
func (a *answer) keepRemoved(v versions, paths []path) {
	switch stored := v.stored.(type) {
	case map[string]any:
		wish, _ := v.wish.(map[string]any)
		result, _ := v.result.(map[string]any)

		for key, was := range stored {
			below := under(paths, key)
			if w, ok := wish[key]; ok {
				a.keepRemoved(versions{wish: w, stored: was, result: result[key]}, below)

				continue
			}

			for _, at := range below {
				if result[key] != nil {
					a.recordKept(was, at)
				}
			}
		}
	case []any:
		a.keepRemovedElements(v, stored, paths)
	}
}

func (a *answer) keepRemovedElements(v versions, stored []any, paths []path) {
	wish, _ := v.wish.([]any)
	result, _ := v.result.([]any)

	if !ofMaps(stored) {
		return
	}

	was, is := counterparts(wish, stored), counterparts(stored, result)

	for j, e := range stored {
		m, _ := e.(map[string]any)
		part := versions{stored: e, wish: map[string]any{}}

		if i := slices.Index(was, j); i >= 0 {
			part.wish = wish[i]
		}

		if is[j] >= 0 {
			part.result = result[is[j]]
		}

		a.keepRemoved(part, under(paths, aliases(m, j)...))
	}
}

func (a *answer) recordElements(v versions, at path) {
	wish, _ := v.wish.([]any)
	same, _ := v.same.([]any)
	stored, _ := v.stored.([]any)
	result, _ := v.result.([]any)

	if len(same) != len(wish) {
		same = wish
	}

	was, is := counterparts(wish, stored), counterparts(same, result)

	for i, segment := range segments(wish) {
		part := versions{wish: wish[i], same: same[i]}
		if was[i] >= 0 {
			part.stored = stored[was[i]]
		}

		if is[i] >= 0 {
			part.result = result[is[i]]
		}

		a.recordParts(part, at.under(segment))
	}
}

// walk calls a function with each leaf of a wish, and its path.
func walk(wish any, at path, each func(v any, at path)) {
	if leaf(wish) {
		each(wish, at)

		return
	}

	switch t := wish.(type) {
	case map[string]any:
		for key, v := range t {
			walk(v, at.under(key), each)
		}
	case []any:
		for i, segment := range segments(t) {
			walk(t[i], at.under(segment), each)
		}
	}
}

// RecordOf is the record of a wish that is let through as a whole, such as that
// of a new object.
func RecordOf(wish map[string]any) *Record {
	c := &Comparison{in: Input{Wish: unstructuredOf(wish), Stored: unstructuredOf(wish)}}
	a := &answer{Comparison: c, record: newRecord(0)}

	a.Comparison.each(func(key string) { a.recordSkipping(key, wish[key], root.under(key)) })

	return a.record
}

// recordSkipping records a part of the wish but for what is not compared.
func (a *answer) recordSkipping(key string, wish any, at path) {
	a.Comparison.at = append(a.Comparison.at, fieldpath.Field(key))
	defer func() { a.Comparison.at = a.Comparison.at[:len(a.Comparison.at)-1] }()

	m, ok := wish.(map[string]any)
	if !ok || len(m) == 0 || len(a.Comparison.at) > 2 {
		a.recordAll(wish, at)

		return
	}

	for key, v := range m {
		if !a.Comparison.skipped(key) {
			a.recordSkipping(key, v, at.under(key))
		}
	}
}
