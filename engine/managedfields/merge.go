// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"maps"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Merge returns the live object as it will be after applying the desired one,
// by a manager of the given fields. Lists whose elements have managers of their
// own are merged by key, others are replaced. Neither is modified.
func Merge(live, desired map[string]any, fields Fields) map[string]any {
	out, same := mergeMaps(live, desired, fields)
	if same {
		return maps.Clone(live)
	}

	return out
}

// mergeMaps returns the live map itself, and true, where nothing changes.
func mergeMaps(live, desired map[string]any, fields Fields) (map[string]any, bool) {
	out := overlay{from: live}

	for k, v := range live {
		if _, ok := desired[k]; ok {
			continue
		}

		switch kept, ok, same := dropOwned(v, Field(k), fields); {
		case !ok:
			out.drop(k)
		case !same:
			out.set(k, kept)
		}
	}

	for k, v := range desired {
		was, has := live[k]
		if v == nil {
			out.drop(k)

			continue
		}

		if merged, same := mergeValues(was, v, Field(k), fields); !has || !same {
			out.set(k, merged)
		}
	}

	return out.result()
}

// overlay is a map that is copied when it is changed.
type overlay struct {
	from, to map[string]any
}

func (o *overlay) own() map[string]any {
	if o.to == nil {
		o.to = make(map[string]any, len(o.from)+1)
		maps.Copy(o.to, o.from)
	}

	return o.to
}

func (o *overlay) set(key string, v any) { o.own()[key] = v }

func (o *overlay) drop(key string) {
	if _, ok := o.from[key]; ok {
		delete(o.own(), key)
	}
}

// result returns the map, and whether it is the one it was.
func (o *overlay) result() (map[string]any, bool) {
	if o.to == nil && o.from != nil {
		return o.from, true
	}

	return o.own(), false
}

// mergeValues returns the live value itself, and true, where it stays.
func mergeValues(live, desired any, at fieldpath.PathElement, fields Fields) (any, bool) {
	switch d := desired.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok && !fields.Atomic(at) {
			return mergeMaps(l, d, fields.Below(at))
		}

		return desired, false
	case []any:
		if l, ok := live.([]any); ok {
			if out, ok := mergeLists(l, d, fields.Below(at)); ok {
				return out, false
			}
		}

		return desired, false
	default:
		return desired, sameScalar(live, desired)
	}
}

func sameScalar(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	default:
		return a == b
	}
}

// dropOwned takes owned fields out of a value that is no longer desired; not ok
// when nothing is left of it, same when all of it is.
func dropOwned(v any, pe fieldpath.PathElement, fields Fields) (kept any, ok, same bool) {
	self := fields.Own.Members.Has(pe)
	under := fields.Below(pe)

	switch t := v.(type) {
	case map[string]any:
		if !under.none() {
			out, same := mergeMaps(t, nil, under)

			return out, len(out) > 0 || !self, same
		}
	case []any:
		if !under.none() {
			if out, ok := mergeLists(t, nil, under); ok {
				return out, len(out) > 0, false
			}
		}
	}

	return v, !self, true
}
