// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Input is a wish, and all by which it is judged whether it is a new one.
type Input struct {
	// Wish is what is to be applied, a partial object.
	Wish *unstructured.Unstructured
	// Stored is the object as it is.
	Stored *unstructured.Unstructured
	// Fields of the stored object by who manages them, of the manager that
	// applies the wish.
	Fields managedfields.Fields
	// Record of the last wish that was let through; nil without.
	Record *Record
	// Baseline is true where what differs from what is stored has been wished all
	// along, as nobody recorded wishes before: but for what a provider acts upon.
	Baseline bool
	// Delegated reports whether somebody else was allowed to set a field of the
	// stored object; nil for none.
	Delegated func(change.Path) bool
}

// Comparison is a wish compared with what is stored.
type Comparison struct {
	// Object is the wish with all that is no change at its stored value.
	Object map[string]any
	// Baseline are the fields that differ from what is stored, and count as
	// wished all along.
	Baseline []string
	// Delegated are the fields that are left to others.
	Delegated []string

	in   Input
	left map[path]bool
	at   change.Path
}

// place is where a value of the wish is.
type place struct {
	// own is true where the manager of the wish has the value that is stored, and
	// member where its set of fields says so of a map itself.
	own, member bool
	// vacant is true in a map that is stored empty, though the manager has it: what was
	// wished in it may have been taken out.
	vacant bool
	// scaled is true where it was set through the subresource scale.
	scaled bool
	// atomic is true for a map that is replaced as a whole.
	atomic bool
	// fields below.
	fields managedfields.Fields
	at     path
	// aliases are the paths that it may have been recorded under: an element of a
	// list goes by another name once the list is another one.
	aliases []path
}

// in returns the place of a field of a map, with what is stored there.
func (p place) in(key string, stored any) place {
	e := p.fields.At(managedfields.Field(key))
	out := place{
		own: e.Own, member: e.Member, scaled: e.Scaled, atomic: e.Atomic,
		fields: e.Below, at: p.at.under(key), aliases: under(p.aliases, key),
	}

	m, ok := stored.(map[string]any)
	out.vacant = p.vacant || ok && len(m) == 0 && !p.fields.Whole

	return out
}

// element returns the place of an element of a list whose elements have keys,
// or none; stored is nil where there is none yet, and others are more names of
// it.
func (p place) element(stored any, keys []string, segment string, others ...string) place {
	e := p.fields.At(managedfields.Element(stored, keys))
	aliases := append(under(p.aliases, append(others, segment)...), under([]path{p.at}, others...)...)

	return place{own: e.Own, vacant: p.vacant, fields: e.Below, at: p.at.under(segment), aliases: aliases}
}

// under are the paths of segments below others.
func under(paths []path, segments ...string) []path {
	if len(paths) == 0 {
		return nil
	}

	out := make([]path, 0, len(paths)*len(segments))

	for _, at := range paths {
		for _, segment := range segments {
			out = append(out, at.under(segment))
		}
	}

	return out
}

// whole reports whether what is wished here is applied as a whole: a map that is
// atomic, or a list whose elements have no keys.
func (p place) whole(wish any) bool {
	if _, list := wish.([]any); list {
		return len(p.fields.Keys()) == 0
	}

	return p.atomic
}

// owns reports whether the manager has the stored value of a leaf: of a list whose
// elements are their own keys, each.
func (p place) owns(wish any) bool {
	list, ok := wish.([]any)
	if !ok || len(list) == 0 || !p.fields.Values() {
		return p.own
	}

	return !slices.ContainsFunc(list, func(e any) bool { return !p.fields.Has(managedfields.Value(e)) })
}

// ordered reports whether a list whose elements are their own keys has those that
// are wished in the order in which they are; of all else it is true.
func (p place) ordered(wish, stored any) bool {
	w, list := wish.([]any)
	if !list || !p.fields.Values() {
		return true
	}

	s, _ := stored.([]any)

	return subsequence(w, s)
}

// fieldMetadata is the field of an object's metadata.
const fieldMetadata = "metadata"

// Compare compares a wish with what is stored. Neither is modified.
//
// A leaf is no change where the record has it and the manager has what is
// stored, or where its value is the one that is stored.
func Compare(in Input) *Comparison {
	c := &Comparison{in: in, left: map[path]bool{}}

	if !in.Fields.Applied() {
		c.in.Fields.Whole, c.in.Record = true, nil // Imported, or restored: what is wished is its own.

		// A record that was restored too shows that wishes were held before.
		c.in.Baseline = in.Baseline && in.Record == nil
	}

	if c.in.Baseline && c.in.Record != nil {
		c.Baseline = slices.Clone(c.in.Record.baseline) // Of a run whose end nobody was reported.
	}

	c.Object = maps.Clone(in.Wish.Object)
	top := place{fields: c.in.Fields, at: root}

	c.each(func(key string) {
		c.entry(c.Object, key, in.Wish.Object[key], in.Stored.Object[key], top)
	})

	return c
}

// each calls a function with each field of the wish that is compared: not with
// what names the object, nor with its metadata but labels and annotations.
func (c *Comparison) each(compare func(key string)) {
	for _, key := range resource.Keys(c.in.Wish.Object) {
		if key != "apiVersion" && key != "kind" && key != "status" {
			compare(key)
		}
	}
}

// skipped reports whether what is wished of a field is not compared: what only
// Kausality writes, the gate's field, and metadata but labels and annotations.
func (c *Comparison) skipped(key string) bool {
	switch {
	case len(c.at) == 1 && c.at[0].Field == fieldMetadata:
		return key != "labels" && key != "annotations"
	case len(c.at) == 2 && c.at[0].Field == fieldMetadata && c.at[1].Field == "annotations":
		return strings.HasPrefix(key, v1alpha1.AnnotationPrefix)
	default:
		return len(c.at) == 1 && c.at[0].Field == "spec" && key == "managementPolicies" && resource.IsManaged(c.in.Stored)
	}
}

// entry puts into a map what a field of it is as it is compared.
func (c *Comparison) entry(into map[string]any, key string, wish, stored any, in place) {
	c.at = append(c.at, fieldpath.Field(key))
	defer func() { c.at = c.at[:len(c.at)-1] }()

	if v, ok := c.value(wish, stored, in.in(key, stored)); ok {
		into[key] = v
	} else {
		delete(into, key)
	}
}

// value returns a part of the wish with all that is no change as it is stored;
// false where that is nothing.
func (c *Comparison) value(wish, stored any, p place) (any, bool) {
	if leaf(wish) {
		return c.leaf(wish, stored, p)
	}

	if list, ok := wish.([]any); ok {
		have, _ := stored.([]any)

		return c.list(list, have, p)
	}

	m, _ := wish.(map[string]any)
	have, isMap := stored.(map[string]any)
	out := c.fields(m, have, p)

	return out, len(out) > 0 || isMap
}

func (c *Comparison) fields(wish, stored map[string]any, p place) map[string]any {
	out := make(map[string]any, len(wish))

	for _, key := range resource.Keys(wish) {
		if c.skipped(key) {
			out[key] = wish[key]
		} else {
			c.entry(out, key, wish[key], stored[key], p)
		}
	}

	if !p.fields.Whole {
		return out
	}

	// What the API server adds to a part that is applied as a whole stays.
	for key, v := range stored {
		below := append(under(p.aliases, key), p.at.under(key))
		if _, ok := wish[key]; !ok && !slices.ContainsFunc(below, func(at path) bool { return c.recorded(v, at) }) {
			out[key] = v
		}
	}

	return out
}

// recorded reports whether anything in a stored value was wished.
func (c *Comparison) recorded(v any, at path) bool {
	if _, ok := c.in.Record.get(at); ok {
		return true
	}

	switch t := v.(type) {
	case map[string]any:
		for key, e := range t {
			if c.recorded(e, at.under(key)) {
				return true
			}
		}
	case []any:
		for i, segment := range segments(t) {
			if c.recorded(t[i], at.under(segment)) {
				return true
			}
		}
	}

	return false
}

// list compares a list of maps.
func (c *Comparison) list(wish, stored []any, p place) (any, bool) {
	keys := p.fields.Keys()
	places, names := p.counterparts(wish, stored), segments(wish)
	out, empty := make([]any, len(wish)), true

	for i, e := range wish {
		m, _ := e.(map[string]any)

		var have map[string]any
		if j := places[i]; j >= 0 {
			have, _ = stored[j].(map[string]any)
		}

		in := p.element(have, keys, names[i], aliases(have, places[i])...)

		c.at = append(c.at, fieldpath.FieldOrIndex(indexText(i, places[i])))
		same := c.fields(m, have, in)
		c.at = c.at[:len(c.at)-1]

		for _, k := range keys { // One that is left out has a default, unless it was wished.
			if v, ok := have[k]; ok && same[k] == nil && (k == defaultedKey && v == defaultOfKey || !c.knows(k, in)) {
				same[k] = v
			}
		}

		out[i], empty = same, empty && len(same) == 0
	}

	own, recorded := p.own || p.fields.Whole || !p.fields.Own.Empty(), c.recorded(wish, p.at)
	if stored == nil && empty && (own || !recorded) && (recorded || !c.isNew(wish, own)) {
		return nil, false
	}

	if p.fields.Whole && len(keys) == 0 {
		out = c.withAdded(out, stored, places, p)
	}

	return out, true
}

// defaultedKey is the one field of built-in kinds by which elements of lists are
// merged, and that has a default: where that is stored, to wish it and not to say
// so is the same.
//
// Source: k8s.io/api core/v1, ContainerPort and ServicePort.
const (
	defaultedKey = "protocol"
	defaultOfKey = "TCP"
)

// knows reports whether a field of an element was wished.
func (c *Comparison) knows(key string, in place) bool {
	return slices.ContainsFunc(append(under(in.aliases, key), in.at.under(key)), func(at path) bool {
		_, ok := c.in.Record.get(at)

		return ok
	})
}

// withAdded returns the elements of a list that is applied as a whole with those
// that the API server added to it, each behind the one that it is behind: they
// stay as what it adds to a map does.
func (c *Comparison) withAdded(same, stored []any, places []int, p place) []any {
	return managedfields.Interleave(stored, same, places, func(j int) bool {
		m, _ := stored[j].(map[string]any)
		names := aliases(m, j)

		return !slices.ContainsFunc(append(under(p.aliases, names...), under([]path{p.at}, names...)...), func(at path) bool {
			return c.recorded(stored[j], at)
		})
	})
}

// leaf says what becomes of one leaf of the wish.
func (c *Comparison) leaf(wish, stored any, p place) (any, bool) {
	recorded, known := c.in.Record.get(p.at)
	unchanged, own := known && recorded == hashOf(wish), p.owns(wish) && (!p.vacant || empty(wish))

	for _, at := range p.aliases {
		as, ok := c.in.Record.get(at)
		known, unchanged = known || ok, unchanged || ok && as == hashOf(wish)
	}

	// What the API server left out still is the manager's. What was applied and is
	// nobody's was taken away: but of an empty list no manager has anything.
	_, list := wish.([]any)
	away := stored == nil && !c.unstored() && (unchanged && !list || !unchanged && c.isNew(wish, own))

	switch {
	case unchanged && own && p.ordered(wish, stored), c.sameValue(wish, stored, p, away):
	case !own && (c.in.Record == nil || unchanged) && c.delegated(p):
		c.left[p.at] = true
		c.Delegated = append(c.Delegated, c.at.String())
	case c.in.Baseline && own && !known && !c.external():
		c.Baseline = append(c.Baseline, c.at.String())
	default:
		return wish, true
	}

	return stored, stored != nil
}

// delegated reports whether somebody else may set a leaf.
func (c *Comparison) delegated(p place) bool {
	return p.scaled || c.in.Delegated != nil && c.in.Delegated(c.at)
}

// external reports whether a provider acts upon a field.
func (c *Comparison) external() bool {
	return len(c.at) > 1 && c.at[0].Field == "spec" && (c.at[1].Field == "forProvider" || c.at[1].Field == "initProvider")
}
