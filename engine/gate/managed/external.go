// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// result reports whether it shows that the change is there, by the status or by
// the conditions of policies, and what is missing where it shows that it is not.
// That a new resource is ready shows that it was made, not that a change since
// has been.
func (m Resource) result(t Terms) (shown bool, missing Lack) {
	if c, ok := resource.ConditionOf(m.Object, resource.ConditionReady); m.Record.Creating && (!ok || !c.True()) {
		return false, Lack{Wait: WaitReady, Text: "waiting for the resource to be ready for the first time"}
	}

	if missing := t.unmet(m.Object.Object); !missing.Nothing() {
		return false, missing
	}

	byWindow := slices.ContainsFunc(UnderWay(m.Record), allowance.OfWindowAlone)
	if differs := m.driftShown(); byWindow && differs != "" {
		return false, Lack{Wait: WaitExternal, Text: "waiting for the external object to show " + differs}
	}

	if reverts(m.Record) {
		if differs := m.revertShown(); differs != "" {
			return false, Lack{Wait: WaitExternal, Text: "waiting for the external object to show " + differs}
		}
	}

	fields, judged := m.allowedFields(t)
	if judged {
		return true, Lack{} // There is nothing else to know by.
	}

	shown, differs := m.compareExternal(fields)
	if differs != "" {
		return shown, Lack{Wait: WaitExternal, Text: fmt.Sprintf("waiting for the external object to show the new value of %s", differs)}
	}

	made := m.Record.Creating && (m.whole() || !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "spec.") }))

	return (shown || made) && !byWindow, Lack{}
}

// wantedAndShown are the value of a field of spec.forProvider and that of the external object, as far as there are any.
func (m Resource) wantedAndShown(field string) (want any, wanted bool, actual any, there bool) {
	segments, err := fieldpath.Parse(field)
	if err != nil || len(segments) < 3 || segments[0].Field != "spec" || segments[1].Field != "forProvider" {
		return nil, false, nil, false
	}

	want, wanted = segments.In(m.Object.Object)
	actual, there = slices.Concat(fieldpath.Path{fieldpath.Field("status"), fieldpath.Field("atProvider")}, segments[2:]).In(m.Object.Object)

	return want, wanted, actual, there
}

// Remains names a field that an allowed change has removed, and the external object still shows; empty for none.
func (m Resource) Remains(limits Limits) string {
	fields, _ := m.allowedFields(m.Terms(limits))

	i := slices.IndexFunc(fields, func(field string) bool {
		_, wanted, actual, there := m.wantedAndShown(field)

		return !wanted && there && actual != nil
	})
	if i < 0 {
		return ""
	}

	return fields[i]
}

// compareExternal compares fields with status.atProvider: whether
// it shows any of them, and the first that has another value. What the spec no
// longer has cannot be compared: it counts as not shown.
func (m Resource) compareExternal(fields []string) (shown bool, differs string) {
	for _, field := range fields {
		want, wanted, actual, there := m.wantedAndShown(field)
		if !wanted || !there {
			continue
		}

		some, equal := compare(want, actual)
		if !equal {
			return true, field
		}

		shown = shown || some
	}

	return shown, ""
}

// whole reports whether the provider shows all that the spec says.
func (m Resource) whole() bool {
	return shows(resource.Map(m.Object.Object, "spec", "forProvider"), resource.Map(m.Object.Object, "status", "atProvider"))
}

// shows reports whether all that is wanted is shown. Providers add to maps, also to those in lists.
func shows(want, have any) bool {
	switch wanted := want.(type) {
	case map[string]any:
		shown, ok := have.(map[string]any)

		for key, w := range wanted {
			ok = ok && shows(w, shown[key])
		}

		return ok
	case []any:
		shown, ok := have.([]any)
		ok = ok && len(shown) == len(wanted)

		for i, w := range wanted {
			ok = ok && shows(w, shown[i])
		}

		return ok
	default:
		return change.Equal(want, have)
	}
}

// compare reports whether an actual value shows anything of a wanted one, and
// whether all it shows is equal. Providers add to maps (tags, defaults) and
// leave out what is secret.
func compare(want, actual any) (shown, equal bool) {
	if want == nil {
		return false, true
	}

	wanted, isMap := want.(map[string]any)
	have, both := actual.(map[string]any)

	if !isMap || !both {
		return true, change.Equal(want, actual)
	}

	for key, w := range wanted {
		a, ok := have[key]
		if !ok {
			continue
		}

		some, equal := compare(w, a)
		if !equal {
			return true, false
		}

		shown = shown || some
	}

	return shown, true
}

// allowedFields are the fields whose change the gate is open for: those that
// the recorded allowances name, and those that the resource's trace records for
// their generations. What policies with a condition of their own allowed is left
// out; true where that is all there is.
func (m Resource) allowedFields(t Terms) (fields []string, judged bool) {
	var (
		others      []string
		generations []int64
	)

	for _, a := range UnderWay(m.Record) {
		if allowance.OfWindowAlone(a) {
			continue
		}

		field := allowance.Field(a)

		if t.judged(a.Policy) {
			judged, others = true, append(others, field)

			continue
		}

		generations = append(generations, a.Generation)
		if field != "" {
			fields = append(fields, field)
		}
	}

	if judged && len(generations) == 0 {
		return nil, true
	}

	entries, err := allowance.ParseTrace(m.Object)
	if err != nil {
		return fields, false
	}

	for _, e := range entries {
		if slices.Contains(generations, e.Generation) && !slices.Contains(fields, e.Field) && !slices.Contains(others, e.Field) {
			fields = append(fields, e.Field)
		}
	}

	return fields, false
}

// Differing are the fields in which the spec of a managed resource differs from
// what its provider shows of the external object: from that to what the spec
// says. All of spec.forProvider differs where nothing of it is shown.
func Differing(u *unstructured.Unstructured) []change.Change {
	want, have := resource.Map(u.Object, "spec", "forProvider"), resource.Map(u.Object, "status", "atProvider")
	path := fieldpath.Path{fieldpath.Field("spec"), fieldpath.Field("forProvider")}

	if shown, _ := compare(want, have); !shown && len(want) > 0 {
		return []change.Change{{Path: path, Field: path.String(), To: want}}
	}

	var out []change.Change

	eachShown(path, want, have, func(path fieldpath.Path, want, have any) {
		if !sameValue(want, have) {
			out = append(out, change.Change{Path: path, Field: path.String(), From: have, To: want})
		}
	})
	slices.SortFunc(out, func(a, b change.Change) int { return strings.Compare(a.Field, b.Field) })

	return out
}

// eachShown calls a function with each value that is wanted and shown, and its path: providers add to maps, also to those in
// lists.
func eachShown(path fieldpath.Path, want, have any, visit func(path fieldpath.Path, want, have any)) {
	wanted, isMap := want.(map[string]any)
	shown, bothMaps := have.(map[string]any)
	elements, isList := want.([]any)
	others, bothLists := have.([]any)

	switch {
	case want == nil:
	case isMap && bothMaps:
		for key, w := range wanted {
			if actual, ok := shown[key]; ok {
				eachShown(append(slices.Clone(path), fieldpath.Field(key)), w, actual, visit)
			}
		}
	case isList && bothLists && len(elements) == len(others) && !sameSet(elements, others):
		for i, w := range elements {
			at := fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(i)}
			eachShown(append(slices.Clone(path), at), w, others[i], visit)
		}
	default:
		visit(path, want, have)
	}
}

// sameValue compares two values. Many a provider shows a set in an order of its own.
func sameValue(want, have any) bool {
	elements, isList := want.([]any)
	others, bothLists := have.([]any)

	return change.Equal(want, have) || isList && bothLists && sameSet(elements, others)
}

// sameSet reports whether two lists have the same elements in any order.
func sameSet(a, b []any) bool {
	left := slices.Clone(b)

	for _, e := range a {
		i := slices.IndexFunc(left, func(o any) bool { return change.Equal(e, o) })
		if i < 0 {
			return false
		}

		left = slices.Delete(left, i, i+1)
	}

	return len(left) == 0
}
