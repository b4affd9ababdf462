// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// ComposedManager starts the field manager under which Crossplane applies
// composed resources.
const ComposedManager = "apiextensions.crossplane.io/composed/"

// ManagerOf is the field manager under which Crossplane applies what an XR
// composes.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0,
// internal/controller/apiextensions/composite/composition_functions.go,
// ComposedFieldOwnerName.
func ManagerOf(xr *unstructured.Unstructured) string {
	sum := sha256.Sum256([]byte(xr.GetName() + xr.GroupVersionKind().GroupKind().String()))

	return ComposedManager + hex.EncodeToString(sum[:])
}

// Fields are fields of a live object, or of a part of it, by who manages them.
type Fields struct {
	// Own are those that one manager applies.
	Own *fieldpath.Set
	// All are those of every manager: they show how lists and maps merge.
	All *fieldpath.Set
	// Scaled are those that were last set through the subresource scale.
	Scaled *fieldpath.Set
	// Whole is true in what one manager applies as a whole: a list or map whose
	// parts no manager can have by themselves.
	Whole bool

	// nothing is where nobody has anything: most places are such.
	nothing *fieldpath.Set
}

// None are those of an object of which nothing is known.
func None() Fields {
	return Fields{Own: fieldpath.NewSet(), All: fieldpath.NewSet(), Scaled: fieldpath.NewSet(), nothing: fieldpath.NewSet()}
}

// Of reads the managedFields of a live object for one manager.
func Of(u *unstructured.Unstructured, manager string) (Fields, error) {
	f := None()

	for _, e := range resource.List(u.Object, "metadata", "managedFields") {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}

		if err := f.add(m, manager, u.GetAPIVersion()); err != nil {
			return None(), fmt.Errorf("cannot read managedFields of %s %q: %w", u.GetKind(), u.GetName(), err)
		}
	}

	return f, nil
}

// add adds one entry of managedFields.
func (f Fields) add(entry map[string]any, manager, apiVersion string) error {
	if otherVersion(entry, apiVersion) {
		return nil
	}

	sets := []*fieldpath.Set{f.All}

	switch subresource := resource.String(entry, "subresource"); {
	case subresource == "scale":
		sets = append(sets, f.Scaled)
	case subresource != "":
		return nil
	case appliedBy(entry, manager):
		sets = append(sets, f.Own)
	}

	return addFields(resource.Map(entry, "fieldsV1"), sets...)
}

// AppliedBy returns the fieldsV1 of what a manager applies of a live object, in its version; nil
// for none, or for more than one entry.
func AppliedBy(u *unstructured.Unstructured, manager string) map[string]any {
	var out map[string]any

	for _, e := range resource.List(u.Object, "metadata", "managedFields") {
		m, _ := e.(map[string]any)
		if !appliedBy(m, manager) || resource.String(m, "subresource") != "" || otherVersion(m, u.GetAPIVersion()) {
			continue
		}

		if out != nil {
			return nil
		}

		out = resource.Map(m, "fieldsV1")
	}

	return out
}

func appliedBy(entry map[string]any, manager string) bool {
	return resource.String(entry, "operation") == "Apply" && resource.String(entry, "manager") == manager
}

func otherVersion(entry map[string]any, apiVersion string) bool {
	v := resource.String(entry, "apiVersion")

	return v != "" && v != apiVersion
}

// Applied reports whether the manager applies any field.
func (f Fields) Applied() bool { return !f.Own.Empty() }

// Has reports whether the manager applies what is below an element, or a value
// there.
func (f Fields) Has(pe fieldpath.PathElement) bool { return f.Whole || f.Own.Members.Has(pe) }

// Below are the fields below an element.
func (f Fields) Below(pe fieldpath.PathElement) Fields {
	all := f.descend(f.All, pe)

	return Fields{
		Own: f.descend(f.Own, pe), All: all, Scaled: f.descend(f.Scaled, pe),
		Whole: f.Whole || all.Empty() && f.Own.Members.Has(pe), nothing: f.nothing,
	}
}

// Entry is what is known of the field or element at one place.
type Entry struct {
	// Own is true where the manager applies what is below it, or a value there, and
	// Member where its set of fields has the place itself.
	Own, Member bool
	// Scaled is true where it was last set through the subresource scale.
	Scaled bool
	// Atomic is true where it is replaced as a whole, see [Fields.Atomic].
	Atomic bool
	// Below are the fields below it.
	Below Fields
}

// At is what is known of an element: what Has, Below and Atomic say of it, with each set
// searched once.
func (f Fields) At(pe fieldpath.PathElement) Entry {
	member, own, all := f.Own.Members.Has(pe), f.descend(f.Own, pe), f.descend(f.All, pe)

	return Entry{
		Own: f.Whole || member, Member: member, Scaled: f.Scaled.Members.Has(pe),
		Atomic: all.Empty() && f.All.Members.Has(pe),
		Below: Fields{
			Own: own, All: all, Scaled: f.descend(f.Scaled, pe), Whole: f.Whole || member && all.Empty(), nothing: f.nothing,
		},
	}
}

// Atomic reports whether the map or list at an element is replaced as a whole by
// who applies it: somebody has it, and nobody a part of it.
func (f Fields) Atomic(pe fieldpath.PathElement) bool {
	parts, ok := f.All.Children.Get(pe)

	return (!ok || parts.Empty()) && f.All.Members.Has(pe)
}

// Keys are the names of the key fields by which the elements of a list are
// distinguished; none for a list that is replaced as a whole.
func (f Fields) Keys() []string {
	var keys []string

	find := func(pe fieldpath.PathElement) {
		if pe.Key == nil || keys != nil {
			return
		}

		for _, k := range *pe.Key {
			keys = append(keys, k.Name)
		}
	}

	f.All.Members.Iterate(find)
	f.All.Children.Iterate(find)

	return keys
}

// Values reports whether a list's elements are their own keys.
func (f Fields) Values() bool {
	found := false

	f.All.Members.Iterate(func(pe fieldpath.PathElement) { found = found || pe.Value != nil })

	return found
}

// none reports whether the manager has nothing here.
func (f Fields) none() bool { return f.Own.Empty() }

func (f Fields) descend(set *fieldpath.Set, pe fieldpath.PathElement) *fieldpath.Set {
	if set.Empty() {
		return set
	}

	if s, ok := set.Children.Get(pe); ok {
		return s
	}

	if f.nothing != nil {
		return f.nothing
	}

	return fieldpath.NewSet()
}

// addFields adds decoded fieldsV1 to sets. An entry with nothing or a dot in it
// stands for itself, and for what is below it otherwise; see
// https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#FieldsV1.
func addFields(fields map[string]any, sets ...*fieldpath.Set) error {
	// In order, or each of many would have to be put between the others.
	for _, name := range resource.Keys(fields) {
		if name == "." {
			continue
		}

		v := fields[name]

		pe, err := fieldpath.DeserializePathElement(name)
		if errors.Is(err, fieldpath.ErrUnknownPathElementType) {
			continue // Of a later version: what we do not know we do not merge by.
		}

		if err != nil {
			return fmt.Errorf("element %q: %w", name, err)
		}

		under, _ := v.(map[string]any)
		if _, self := under["."]; self || len(under) == 0 {
			for _, set := range sets {
				set.Members.Insert(pe)
			}
		}

		if len(under) == 0 {
			continue
		}

		below := make([]*fieldpath.Set, len(sets))
		for i, set := range sets {
			below[i] = set.Children.Descend(pe)
		}

		if err := addFields(under, below...); err != nil {
			return err
		}
	}

	return nil
}

// Field is the element of a map's field.
func Field(name string) fieldpath.PathElement {
	return fieldpath.PathElement{FieldName: &name}
}

// Element is the element of a list whose elements have keys.
func Element(e any, keys []string) fieldpath.PathElement {
	m, _ := e.(map[string]any)
	list := make(value.FieldList, 0, len(keys))

	for _, k := range keys {
		list = append(list, value.Field{Name: k, Value: value.NewValueInterface(m[k])})
	}

	return fieldpath.PathElement{Key: &list}
}

// Value is the element of a list whose elements are their own keys.
func Value(e any) fieldpath.PathElement {
	v := value.NewValueInterface(e)

	return fieldpath.PathElement{Value: &v}
}
