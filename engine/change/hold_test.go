// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

func TestWhatIsHeldInListsLeavesWholeElements(t *testing.T) {
	cases := map[string]struct {
		reason         string
		old, obj, want string
		hold           []string
	}{
		"AddedWithoutName": {
			reason: "An element of which all but the image is held is none.",
			old:    "{l: [{name: a, image: x}]}", obj: "{l: [{name: a, image: x}, {name: b, image: y}]}",
			hold: []string{"l[1].name"}, want: "{l: [{name: a, image: x}]}",
		},
		"AddedInPart": {
			reason: "One that keeps its name is one.",
			old:    "{l: [{name: a, image: x}]}", obj: "{l: [{name: a, image: x}, {name: b, image: y}]}",
			hold: []string{"l[1].image"}, want: "{l: [{name: a, image: x}, {name: b}]}",
		},
		"RemovedInPart": {
			reason: "An element that must stay stays whole, in its place.",
			old:    "{l: [{name: a, image: x}, {name: b, image: y}]}", obj: "{l: [{name: b, image: y}]}",
			hold: []string{"l[0].image"}, want: "{l: [{name: a, image: x}, {name: b, image: y}]}",
		},
		"RemovedAmongOthers": {
			reason: "Of several each keeps its own place.",
			old:    "{l: [{name: a}, {name: b}, {name: c}, {name: d}]}", obj: "{l: [{name: c}]}",
			hold: []string{"l[1].name", "l[3].name"}, want: "{l: [{name: c}, {name: b}, {name: d}]}",
		},
		"RemovedList": {
			reason: "A list of which something stays is there.",
			old:    "{l: [{name: a, v: 1}, {name: b, v: 2}]}", obj: "{}",
			hold: []string{"l[1].name", "l[1].v"}, want: "{l: [{name: b, v: 2}]}",
		},
		"ByIndex": {
			reason: "Scalars are held by index.",
			old:    "{l: [1, 2, 3]}", obj: "{l: [1, 9]}",
			hold: []string{"l[1]"}, want: "{l: [1, 2]}",
		},
		"Nulls": {
			reason: "A null in a list keeps the places of those after it.",
			old:    "{l: [null, 1, 2]}", obj: "{l: [null, 1, 9]}",
			hold: []string{"l[2]"}, want: "{l: [null, 1, 2]}",
		},
		"NullsGone": {
			reason: "Also of those that are gone.",
			old:    "{l: [null, 1, null, 2]}", obj: "{}",
			hold: []string{"l[1]", "l[3]"}, want: "{l: [null, 1, null, 2]}",
		},
		"NothingInIt": {
			reason: "A list of nothing is a leaf, as an empty one is.",
			old:    "{l: [[null], {a: null}, {}]}", obj: "{}",
			hold: []string{"l[0]", "l[1]", "l[2]"}, want: "{l: [[null], {a: null}, {}]}",
		},
		"ToNull": {
			reason: "A null that replaces a value is stored as one.",
			old:    "{l: [5, 1], a: 1}", obj: "{l: [null, 1], a: 2}",
			hold: []string{"a"}, want: "{l: [null, 1], a: 1}",
		},
		"Duplicates": {
			reason: "Two of one name are matched by index.",
			old:    "{l: [{name: a, v: 1}, {name: a, v: 2}]}", obj: "{l: [{name: a, v: 1}, {name: a, v: 3}]}",
			hold: []string{"l[1].v"}, want: "{l: [{name: a, v: 1}, {name: a, v: 2}]}",
		},
		"Retyped": {
			reason: "Another type is held as a whole.",
			old:    "{a: {b: 1}, c: [1]}", obj: "{a: [1], c: x}",
			hold: []string{"a", "c"}, want: "{a: {b: 1}, c: [1]}",
		},
		"AddedMap": {
			reason: "An added map of which all is held is not there.",
			old:    "{}", obj: "{a: {b: 1, c: {}}, l: [[1]]}",
			hold: []string{"a.b", "a.c", "l[0][0]"}, want: "{}",
		},
		"Emptied": {
			reason: "Removing the last entry leaves an empty map, and holding that fills it.",
			old:    "{a: {b: 1}, c: {d: 1}}", obj: "{a: {}, c: {}}",
			hold: []string{"a.b"}, want: "{a: {b: 1}, c: {}}",
		},
		"Labels": {
			reason: "Of metadata only what people and controllers decide on is held.",
			old:    "{metadata: {labels: {a: b}, resourceVersion: 1}}", obj: "{metadata: {labels: {a: c}, resourceVersion: 2}}",
			hold: []string{"metadata.labels.a"}, want: "{metadata: {labels: {a: b}, resourceVersion: 2}}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			oldObj, newObj := decode(t, tc.old), decode(t, tc.obj)
			asked := map[string]bool{}

			got := change.Merge(oldObj, newObj, func(c change.Change) bool {
				asked[c.Field] = true

				return slices.Contains(tc.hold, c.Field)
			})
			if diff := cmp.Diff(decode(t, tc.want), got); diff != "" {
				t.Errorf("%s\nMerge, -want, +got:\n%s", tc.reason, diff)
			}

			for _, f := range tc.hold {
				if !asked[f] {
					t.Errorf("%s\nnobody was asked about %s, but about %v", tc.reason, f, asked)
				}
			}

			if diff := cmp.Diff([]any{decode(t, tc.old), decode(t, tc.obj)}, []any{oldObj, newObj}); diff != "" {
				t.Errorf("%s\nMerge changed its arguments:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHoldingNothingOrAllGivesOneVersion(t *testing.T) {
	const (
		a = "{spec: {a: 1, b: {c: [1, 2, {d: 1}]}, l: [{name: x, m: {n: 1}}, {name: y}], e: {}, f: [], g: {h: [[1], [2]]}}}"
		b = "{spec: {a: 2, b: {c: [2, {d: 2}]}, l: [{name: y, m: {o: 2}}, {name: z}], e: {q: 1}, f: [1], i: [[3]]}, other: 1}"
	)

	for _, pair := range [][2]string{{a, b}, {b, a}} {
		none := change.Merge(decode(t, pair[0]), decode(t, pair[1]), func(change.Change) bool { return false })
		if diff := cmp.Diff(decode(t, pair[1]), none); diff != "" {
			t.Errorf("nothing held, -new, +got:\n%s", diff)
		}

		all := change.Merge(decode(t, pair[0]), decode(t, pair[1]), func(change.Change) bool { return true })
		if left := change.Between(decode(t, pair[0]), all); len(left) > 0 {
			t.Errorf("all held, still changed: %+v", left)
		}
	}
}

func TestValuesAreComparedAsJSON(t *testing.T) {
	cases := map[string]struct {
		a, b any
		want bool
	}{
		"Ints":       {int64(1), int64(1), true},
		"IntFloat":   {int64(1), 1.0, true},
		"Fraction":   {int64(1), 1.5, false},
		"Large":      {int64(9007199254740993), int64(9007199254740992), false},
		"IntString":  {int64(1), "1", false},
		"Bools":      {true, true, true},
		"BoolInt":    {true, int64(1), false},
		"Nulls":      {nil, nil, true},
		"NullEmpty":  {nil, map[string]any{}, false},
		"NullList":   {nil, []any{}, false},
		"MapList":    {map[string]any{}, []any{}, false},
		"Maps":       {map[string]any{"a": int64(1)}, map[string]any{"a": 1.0}, true},
		"MapKeys":    {map[string]any{"a": int64(1)}, map[string]any{"b": int64(1)}, false},
		"MapSizes":   {map[string]any{"a": int64(1)}, map[string]any{}, false},
		"ListOrder":  {[]any{"a", "b"}, []any{"b", "a"}, false},
		"ListScalar": {[]any{"a"}, "a", false},
		"ScalarList": {"a", []any{"a"}, false},
		"Lists":      {[]any{map[string]any{"a": nil}}, []any{map[string]any{"a": nil}}, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := change.Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("Equal(%v, %v) = %v", tc.a, tc.b, got)
			}
		})
	}
}

func TestAValueIsWrittenForAPerson(t *testing.T) {
	cases := map[string]struct {
		value any
		limit int
		want  string
	}{
		"Nothing": {nil, 10, ""}, "String": {"a b", 10, "a b"}, "Number": {int64(3), 10, "3"}, "Map": {map[string]any{"a": true}, 20, `{"a":true}`},
		"Cut": {"abcdefghijkl", 10, "abcdefg..."}, "Rune": {"aaaaaaüüüü", 10, "aaaaaa..."}, "Tiny": {"abcdef", 2, "..."},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := change.Text(tc.value, tc.limit); got != tc.want {
				t.Errorf("Text(%v, %d) = %q, want %q", tc.value, tc.limit, got, tc.want)
			}
		})
	}
}

func TestAPatternShowsWhatItIs(t *testing.T) {
	for text, want := range map[string][2]bool{
		"create": {true, false}, "delete": {true, false}, "spec.create": {}, "spec.l[*].x": {false, true}, "spec": {},
	} {
		p, err := change.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}

		if got := [2]bool{p.Pseudo(), p.Wildcard()}; got != want || p.String() != text {
			t.Errorf("%q: pseudo, wildcard %v, want %v", text, got, want)
		}
	}

	p, err := change.ParsePattern("spec.l[*]")
	if err != nil || !p.Covers(change.Between(nil, map[string]any{"spec": map[string]any{"l": []any{strings.Repeat("x", 3)}}})[0].Path) {
		t.Errorf("a wildcard covers an index: %v", err)
	}
}
