// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// person is the field manager of edits by hand.
const person = "kubectl-edit"

// byHand are single changes of a stored object, in random order: at places that
// a wish names, be they stored or not, or at places that it does not.
func byHand(rng *rand.Rand, sch node, wish, stored map[string]any, named bool) []edit {
	out := slices.DeleteFunc(edits(rng, stored), func(e edit) bool {
		// Which of two orders is meant, only the wish knows.
		return e.what == "swap" || e.what == "remove" && len(e.at) == 1 && e.at[0] == "spec" || isKey(sch, e.at) || names(sch, wish, stored, e.at) != named || !named && e.what != "change" || emptied(wish, e)
	})

	if !named {
		return out
	}

	for _, at := range leaves(gated(wish), nil) {
		if len(at) == 0 {
			continue
		}

		_, has := get(stored, at)
		_, parent := get(stored, at[:len(at)-1])

		if _, element := at[len(at)-1].(int); has || !parent || element || moved(wish, stored, at) {
			continue
		}

		was, _ := get(wish, at)
		if v := filled(at, was); v != nil {
			out = slices.Insert(out, rng.IntN(len(out)+1), edit{"add", at, v})
		}
	}

	return out
}

// moved reports whether a location is in another element of what is stored than of
// the wish.
func moved(wish, stored map[string]any, at location) bool {
	for i := range at {
		w, _ := get(wish, at[:i+1])
		s, _ := get(stored, at[:i+1])

		if _, element := at[i].(int); element && fmt.Sprint(asMap(w)["name"]) != fmt.Sprint(asMap(s)["name"]) {
			return true
		}
	}

	return false
}

// emptied reports whether an edit takes away an empty list, or a null: nobody can
// tell, for field managers do not have lists, but their elements, and a null says
// that there is nothing.
func emptied(wish map[string]any, e edit) bool {
	was, named := get(wish, e.at)

	return named && e.what == "remove" && slices.ContainsFunc(leaves(was, nil), func(at location) bool {
		v, _ := get(was, at)
		list, ok := v.([]any)

		return v == nil || ok && len(list) == 0
	})
}

// filled is another value in place of one, for empty ones too.
func filled(at location, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return map[string]any{"by": "hand"}
	case []any:
		return []any{"by hand"}
	default:
		return another(at, v)
	}
}

// encoded is a wish with the text of a Secret as it is stored.
func encoded(wish map[string]any) map[string]any {
	plain, ok := wish["stringData"].(map[string]any)
	if !ok {
		return wish
	}

	out := runtime.DeepCopyJSON(wish)
	data := asMap(out["data"])

	if data == nil {
		data = map[string]any{}
	}

	for key, v := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(asText(v)))
	}

	out["data"] = data
	delete(out, "stringData")

	return out
}

// isKey reports whether a location is a key of a list's element: with another one
// it is another element.
func isKey(sch node, at location) bool {
	last := len(at) - 1
	if last < 1 {
		return false
	}

	key, ok := at[last].(string)
	_, element := at[last-1].(int)

	return ok && element && slices.Contains(walk(sch, at[:last-1]).keys(), key)
}

// walk is the schema of a location.
func walk(sch node, at location) node {
	for _, e := range at {
		if sch == nil {
			return nil
		}

		sch = sch.below(e)
	}

	return sch
}

// names reports whether a wish names what is stored at a location: the field, the
// element of a list by its keys, or the whole that it is a part of.
func names(sch node, wish, stored any, at location) bool {
	for i, e := range at {
		if i > 0 && sch.whole(stored) {
			return true
		}

		switch key := e.(type) {
		case string:
			w, ok := wish.(map[string]any)
			if !ok {
				return false
			}

			if wish, ok = w[key]; !ok {
				return false
			}

			stored, sch = asMap(stored)[key], sch.below(key)
		case int:
			list, _ := wish.([]any)
			element := asList(stored)[key]

			w, ok := same(sch.keys(), list, element)
			if !ok {
				return false
			}

			wish, stored, sch = w, element, sch.below(key)
		}
	}

	return wish != nil
}

// same finds the element of a list that has the keys of another one. A key that
// is not given has a default.
func same(keys []string, list []any, element any) (any, bool) {
	for _, w := range list {
		m, isMap := w.(map[string]any)
		of, ok := element.(map[string]any)

		if !isMap || !ok {
			if fmt.Sprint(w) == fmt.Sprint(element) {
				return w, true
			}

			continue
		}

		if !slices.ContainsFunc(keys, func(key string) bool { return m[key] != nil && fmt.Sprint(m[key]) != fmt.Sprint(of[key]) }) {
			return w, true
		}
	}

	return nil, false
}

// applies reports whether an apply can make an edit: not one that removes, nor
// another value in a set.
func (e edit) applies() bool {
	_, element := e.at[len(e.at)-1].(int)

	return e.value != nil && !element
}

// edit edits the stored object by hand: by an update, or by a server-side apply
// of just that field.
func (c *composite) edit(ctx context.Context, sch node, stored *unstructured.Unstructured, e edit, byApply bool) error {
	if !byApply {
		u := &unstructured.Unstructured{Object: e.on(stored.Object)}

		return c.client.Update(ctx, u, client.FieldOwner(person))
	}

	after := e.on(stored.Object)
	part := asMap(extract(sch, after, e.at))

	u := &unstructured.Unstructured{Object: part}
	u.SetGroupVersionKind(c.kind)
	u.SetName(c.key.Name)
	u.SetNamespace(c.key.Namespace)

	return c.client.Patch(ctx, u, client.Apply, client.ForceOwnership, client.FieldOwner(person)) //nolint:staticcheck // As kubectl does.
}

// extract is the part of an object that has to be applied to set one location:
// with the keys of elements, and what is atomic as a whole.
func extract(sch node, v any, at location) any {
	if len(at) == 0 || sch.whole(v) {
		return runtime.DeepCopyJSONValue(v)
	}

	switch key := at[0].(type) {
	case string:
		return map[string]any{key: extract(sch.below(key), asMap(v)[key], at[1:])}
	case int:
		element := asList(v)[key]
		out := extract(sch.below(key), element, at[1:])

		if m, ok := out.(map[string]any); ok {
			m = maps.Clone(m)
			for _, k := range sch.keys() {
				if has, ok := asMap(element)[k]; ok {
					m[k] = has
				}
			}

			out = m
		}

		return []any{out}
	default:
		panic(fmt.Sprintf("an element of a path that is a %T", key))
	}
}
