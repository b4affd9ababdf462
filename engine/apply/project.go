// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// Project returns what a manager has to apply so that the live object becomes
// result: the fields of desired at their value in result, and those it owns
// and that result keeps. What result lacks is left out. Nothing is modified.
func Project(desired, live, result map[string]any, owned *fieldpath.Set) map[string]any {
	out := map[string]any{}

	for k, d := range desired {
		if r, ok := result[k]; ok {
			out[k] = projectValue(d, live[k], r, below(owned, element(k)))
		}
	}

	for k, r := range result {
		if _, ok := desired[k]; ok {
			continue
		}

		if kept, ok := keepOwned(live[k], r, element(k), owned); ok {
			out[k] = kept
		}
	}

	return out
}

func projectValue(desired, live, result any, owned *fieldpath.Set) any {
	d, dok := desired.(map[string]any)
	r, rok := result.(map[string]any)

	if !dok || !rok {
		if _, list := desired.([]any); list {
			if merged, _ := mergeValues(live, desired, owned); change.Equal(result, merged) {
				return desired // Nothing in it is kept back.
			}
		}

		return projectList(desired, live, result, owned)
	}

	l, _ := live.(map[string]any)

	return Project(d, l, r, owned)
}

// keepOwned returns the owned part of a value that desired does not mention.
func keepOwned(live, result any, pe fieldpath.PathElement, owned *fieldpath.Set) (any, bool) {
	self, under := owned.Members.Has(pe), below(owned, pe)
	if live == nil || !self && under.Empty() {
		return nil, false
	}

	r, ok := result.(map[string]any)
	if !ok || under.Empty() {
		return projectList(nil, live, result, under), true
	}

	l, _ := live.(map[string]any)
	out := Project(nil, l, r, under)

	return out, len(out) > 0 || self
}

// projectList leaves out of a list the elements that others own and nobody
// desires: applied once, they would be this manager's to remove. Values other
// than lists owned element by element are returned as they are.
func projectList(desired, live, result any, owned *fieldpath.Set) any {
	d, _ := desired.([]any)
	l, _ := live.([]any)

	r, ok := result.([]any)
	if !ok {
		return result
	}

	if keys := elementKeys(owned); len(keys) > 0 {
		return projectKeyed(d, l, r, owned, keys)
	}

	if !ownsValues(owned) {
		return result
	}

	return slices.DeleteFunc(slices.Clone(r), func(e any) bool {
		v := value.NewValueInterface(e)

		return !owned.Members.Has(fieldpath.PathElement{Value: &v}) &&
			!slices.ContainsFunc(d, func(o any) bool { return change.Equal(o, e) })
	})
}

func projectKeyed(desired, live, result []any, owned *fieldpath.Set, keys []string) []any {
	out := make([]any, 0, len(result))

	for _, r := range result {
		d, wanted := withKey(desired, keyOf(r, keys), keys)
		l, _ := withKey(live, keyOf(r, keys), keys)
		pe := keyElement(r, keys)
		under := below(owned, pe)

		switch {
		case wanted:
			out = append(out, withKeys(projectValue(d, l, r, under), r, keys))
		case !under.Empty():
			m, _ := r.(map[string]any)
			was, _ := l.(map[string]any)
			out = append(out, withKeys(Project(nil, was, m, under), r, keys))
		case owned.Members.Has(pe):
			out = append(out, r)
		}
	}

	return out
}

// withKeys puts the key fields of a list element into the part of it that is
// applied.
func withKeys(part, e any, keys []string) any {
	p, pok := part.(map[string]any)
	m, mok := e.(map[string]any)

	if !pok || !mok {
		return part
	}

	for _, k := range keys {
		if v, ok := m[k]; ok {
			p[k] = v
		}
	}

	return p
}

func withKey(list []any, key string, keys []string) (any, bool) {
	i := slices.IndexFunc(list, func(e any) bool { return keyOf(e, keys) == key })
	if i < 0 {
		return nil, false
	}

	return list[i], true
}

// Extract returns the part of a live object that a manager owns: applying it
// changes nothing.
func Extract(live map[string]any, owned *fieldpath.Set) map[string]any {
	return Project(nil, live, live, owned)
}
