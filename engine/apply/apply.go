// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// ComposedManager starts the field manager under which Crossplane applies
// composed resources.
const ComposedManager = "apiextensions.crossplane.io/composed"

// Owned returns the fields of a live object that field managers with a name
// prefix own by server-side apply.
func Owned(u *unstructured.Unstructured, managerPrefix string) (*fieldpath.Set, error) {
	out := fieldpath.NewSet()

	for _, e := range resource.List(u.Object, "metadata", "managedFields") {
		m, ok := e.(map[string]any)
		if !ok || resource.String(m, "operation") != "Apply" || resource.String(m, "subresource") != "" ||
			!strings.HasPrefix(resource.String(m, "manager"), managerPrefix) {
			continue
		}

		if err := addFields(out, resource.Map(m, "fieldsV1")); err != nil {
			return nil, fmt.Errorf("cannot read managedFields of %s %q: %w", u.GetKind(), u.GetName(), err)
		}
	}

	return out, nil
}

// addFields adds decoded fieldsV1 to a set. An entry with nothing or a dot in it
// stands for itself, and for what is below it otherwise; see
// https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#FieldsV1.
func addFields(set *fieldpath.Set, fields map[string]any) error {
	for name, v := range fields {
		if name == "." {
			continue
		}

		pe, err := fieldpath.DeserializePathElement(name)
		if errors.Is(err, fieldpath.ErrUnknownPathElementType) {
			continue // Of a later version: what we do not know we do not merge by.
		}

		if err != nil {
			return fmt.Errorf("element %q: %w", name, err)
		}

		under, _ := v.(map[string]any)
		if _, self := under["."]; self || len(under) == 0 {
			set.Members.Insert(pe)
		}

		if len(under) == 0 {
			continue
		}

		if err := addFields(set.Children.Descend(pe), under); err != nil {
			return err
		}
	}

	return nil
}

// Merge returns the live object as it will be after applying the desired one,
// by a manager that owns the given fields now. Lists in which elements are
// owned by key are merged by key, others are replaced. Neither is modified.
func Merge(live, desired map[string]any, owned *fieldpath.Set) map[string]any {
	out, same := mergeMaps(live, desired, owned)
	if same {
		return maps.Clone(live)
	}

	return out
}

// mergeMaps returns the live map itself, and true, where nothing changes.
func mergeMaps(live, desired map[string]any, owned *fieldpath.Set) (map[string]any, bool) {
	out := overlay{from: live}

	for k, v := range live {
		if _, ok := desired[k]; ok {
			continue
		}

		switch kept, ok, same := dropOwned(v, element(k), owned); {
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

		if merged, same := mergeValues(was, v, below(owned, element(k))); !has || !same {
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
func mergeValues(live, desired any, owned *fieldpath.Set) (any, bool) {
	switch d := desired.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok {
			return mergeMaps(l, d, owned)
		}

		return desired, false
	case []any:
		if l, ok := live.([]any); ok {
			if out, ok := mergeLists(l, d, owned); ok {
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
func dropOwned(v any, pe fieldpath.PathElement, owned *fieldpath.Set) (kept any, ok, same bool) {
	self := owned.Members.Has(pe)
	under := below(owned, pe)

	switch t := v.(type) {
	case map[string]any:
		if !under.Empty() {
			out, same := mergeMaps(t, nil, under)

			return out, len(out) > 0 || !self, same
		}
	case []any:
		if out, ok := mergeLists(t, nil, under); ok {
			return out, len(out) > 0, false
		}
	}

	return v, !self, true
}

// mergeLists merges lists whose elements are owned one by one: by key, or by
// value where the list is a set. False for a list that is replaced as a whole.
func mergeLists(live, desired []any, owned *fieldpath.Set) ([]any, bool) {
	if keys := elementKeys(owned); len(keys) > 0 {
		return mergeKeyed(live, desired, owned, keys), true
	}

	if ownsValues(owned) {
		return mergeSets(live, desired, owned), true
	}

	return nil, false
}

func ownsValues(owned *fieldpath.Set) bool {
	found := false

	owned.Members.Iterate(func(pe fieldpath.PathElement) { found = found || pe.Value != nil })

	return found
}

// mergeSets merges lists whose elements are their own keys: live ones in their
// order, less those the manager owned and no longer wants, then new ones.
func mergeSets(live, desired []any, owned *fieldpath.Set) []any {
	var out []any

	in := func(list []any, e any) bool {
		return slices.ContainsFunc(list, func(o any) bool { return value.Equals(value.NewValueInterface(o), value.NewValueInterface(e)) })
	}

	for _, l := range live {
		v := value.NewValueInterface(l)
		if in(desired, l) || !owned.Members.Has(fieldpath.PathElement{Value: &v}) {
			out = append(out, l)
		}
	}

	for _, d := range desired {
		if !in(live, d) {
			out = append(out, d)
		}
	}

	return out
}

// mergeKeyed merges a list whose elements have keys: live ones in their order,
// less those the manager owned and no longer wants, then new ones.
func mergeKeyed(live, desired []any, owned *fieldpath.Set, keys []string) []any {
	var out []any

	wanted := map[string]any{}

	for _, d := range desired {
		wanted[keyOf(d, keys)] = d
	}

	for _, l := range live {
		key, pe := keyOf(l, keys), keyElement(l, keys)

		if d, ok := wanted[key]; ok {
			merged, _ := mergeValues(l, d, below(owned, pe))
			out = append(out, merged)
			delete(wanted, key)

			continue
		}

		if !owned.Members.Has(pe) && below(owned, pe).Empty() {
			out = append(out, l)
		}
	}

	for _, d := range desired {
		if _, ok := wanted[keyOf(d, keys)]; ok {
			out = append(out, d)
		}
	}

	return out
}

// elementKeys returns the names of the key fields by which a list's elements
// are owned; none for a list that is replaced as a whole.
func elementKeys(owned *fieldpath.Set) []string {
	var keys []string

	find := func(pe fieldpath.PathElement) {
		if pe.Key == nil || keys != nil {
			return
		}

		for _, f := range *pe.Key {
			keys = append(keys, f.Name)
		}
	}

	owned.Members.Iterate(find)
	owned.Children.Iterate(find)

	return keys
}

func keyElement(e any, keys []string) fieldpath.PathElement {
	m, _ := e.(map[string]any)
	list := make(value.FieldList, 0, len(keys))

	for _, k := range keys {
		list = append(list, value.Field{Name: k, Value: value.NewValueInterface(m[k])})
	}

	return fieldpath.PathElement{Key: &list}
}

func keyOf(e any, keys []string) string {
	m, _ := e.(map[string]any)
	parts := make([]string, 0, len(keys))

	for _, k := range keys {
		parts = append(parts, fmt.Sprint(m[k]))
	}

	return strings.Join(parts, "\x00")
}

func element(name string) fieldpath.PathElement {
	return fieldpath.PathElement{FieldName: &name}
}

func below(owned *fieldpath.Set, pe fieldpath.PathElement) *fieldpath.Set {
	if s, ok := owned.Children.Get(pe); ok {
		return s
	}

	return fieldpath.NewSet()
}
