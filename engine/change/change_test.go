// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()

	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}

	return m
}

func TestChangesAreFoundAtLeaves(t *testing.T) {
	cases := map[string]struct {
		reason   string
		old, obj string
		want     []string
	}{
		"Nothing":  {reason: "Equal objects have no changes.", old: "{spec: {a: 1}}", obj: "{spec: {a: 1}}"},
		"Scalar":   {reason: "A changed value is one change.", old: "{spec: {a: 1}}", obj: "{spec: {a: 2}}", want: []string{"spec.a"}},
		"ByValue":  {reason: "Numbers are compared by value.", old: "{spec: {a: 1}}", obj: "{spec: {a: 1.0}}"},
		"Added":    {reason: "An added map is its leaves.", old: "{}", obj: "{spec: {a: {b: 1, c: 2}}}", want: []string{"spec.a.b", "spec.a.c"}},
		"Removed":  {reason: "So is a removed one.", old: "{spec: {a: {b: 1, c: 2}}}", obj: "{spec: {}}", want: []string{"spec.a.b", "spec.a.c"}},
		"Empty":    {reason: "An empty map is a leaf.", old: "{spec: {}}", obj: "{spec: {a: {}}}", want: []string{"spec.a"}},
		"Null":     {reason: "Null is nothing.", old: "{spec: {}}", obj: "{spec: {a: null}}"},
		"Type":     {reason: "Another type is one change.", old: "{spec: {a: {b: 1}}}", obj: "{spec: {a: x}}", want: []string{"spec.a"}},
		"Dotted":   {reason: "A key with dots is bracketed.", old: "{}", obj: "{metadata: {annotations: {a.b/c: x}}}", want: []string{"metadata.annotations[a.b/c]"}},
		"Bookkeep": {reason: "Status and the API server's metadata do not count.", old: "{status: {a: 1}}", obj: "{metadata: {generation: 2}, status: {a: 2}}"},
		"Named": {
			reason: "Removing the first of named elements is one change.",
			old:    "{spec: {l: [{name: a, v: 1}, {name: b, v: 2}, {name: c, v: 3}]}}", obj: "{spec: {l: [{name: b, v: 2}, {name: c, v: 3}]}}",
			want: []string{"spec.l[0].name", "spec.l[0].v"},
		},
		"NamedIndex": {
			reason: "The index is the one in the new object.",
			old:    "{spec: {l: [{name: a, v: 1}, {name: b, v: 2}]}}", obj: "{spec: {l: [{name: b, v: 9}, {name: a, v: 1}]}}",
			want: []string{"spec.l", "spec.l[0].v"},
		},
		"Indexed": {
			reason: "Elements without unique names are matched by index.",
			old:    "{spec: {l: [1, 2, 3]}}", obj: "{spec: {l: [2, 3]}}", want: []string{"spec.l[0]", "spec.l[1]", "spec.l[2]"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changes := change.Between(decode(t, tc.old), decode(t, tc.obj))
			got := make([]string, 0, len(changes))

			for _, c := range changes {
				got = append(got, c.Field)
			}

			if !slices.Equal(tc.want, got) {
				diff := cmp.Diff(tc.want, got)
				t.Errorf("%s\nBetween, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWhatIsHeldKeepsItsOldValue(t *testing.T) {
	const (
		oldText = "{spec: {a: 1, b: {c: 2}, l: [{name: x, v: 1}, {name: y, v: 2}], gone: 3}}"
		newText = "{spec: {a: 9, b: {c: 8, d: 7}, l: [{name: y, v: 6}, {name: z, v: 5}]}}"
	)

	cases := map[string]struct {
		reason string
		hold   []string
		want   string
	}{
		"Nothing": {reason: "Nothing held is the new object.", want: newText},
		"All": {
			reason: "All held is the old object.",
			hold:   []string{"spec.a", "spec.b.c", "spec.b.d", "spec.gone", "spec.l[0].name", "spec.l[0].v", "spec.l[1].name", "spec.l[1].v"},
			want:   oldText,
		},
		"Some": {
			reason: "What is not held passes beside what is.",
			hold:   []string{"spec.a", "spec.b.d", "spec.gone"},
			want:   "{spec: {a: 1, b: {c: 8}, gone: 3, l: [{name: y, v: 6}, {name: z, v: 5}]}}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			held := map[string]bool{}
			for _, f := range tc.hold {
				held[f] = true
			}

			got := change.Merge(decode(t, oldText), decode(t, newText), func(c change.Change) bool { return held[c.Field] })
			if diff := cmp.Diff(decode(t, tc.want), got); diff != "" {
				t.Errorf("%s\nMerge, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAPatternCoversWhatIsBelowIt(t *testing.T) {
	cases := map[string]struct {
		pattern, path string
		want          bool
	}{
		"Same":     {"spec.size", "spec.size", true},
		"Below":    {"spec", "spec.size.unit", true},
		"Above":    {"spec.size.unit", "spec.size", false},
		"Sibling":  {"spec.size", "spec.sizes", false},
		"Wildcard": {"spec.containers[*].image", "spec.containers[3].image", true},
		"Other":    {"spec.containers[*].image", "spec.containers[3].name", false},
		"Key":      {"metadata.annotations[jira]", "metadata.annotations.jira", true},
		"Digits":   {"data[0]", "data[0]", true},
		"Create":   {"create", "create", true},
		"Prefix":   {"spec.tags[team*]", "spec.tags.teams", true},
		"NoPrefix": {"spec.tags[team*]", "spec.tags.tea", false},
		"Place":    {"spec.list[1*]", "spec.list[10]", false},
		"KeyOf1":   {"spec.map[1*]", "spec.map.10", true},
		"Star":     {"spec.siz*", "spec.sizes", false},
		"StarHere": {"spec.siz*", "spec.siz*", true},
		"Quoted":   {"spec.tags['team*']", "spec.tags.teams", true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pattern, err := change.ParsePattern(tc.pattern)
			if err != nil {
				t.Fatal(err)
			}

			path, err := change.ParsePattern(tc.path)
			if err != nil {
				t.Fatal(err)
			}

			if got := pattern.Covers(path.Segments()); got != tc.want {
				t.Errorf("%q covers %q: %v, want %v", tc.pattern, tc.path, got, tc.want)
			}

			if got := change.CoversText(tc.pattern, path.Segments()); got != tc.want {
				t.Errorf("as text, %q covers %q: %v, want %v", tc.pattern, tc.path, got, tc.want)
			}
		})
	}

	for _, text := range []string{"", "spec[", "spec..size", "spec.[", "spec]"} {
		if _, err := change.ParsePattern(text); err == nil {
			t.Errorf("ParsePattern(%q): want an error", text)
		}
	}
}

func TestAFieldIsNoPattern(t *testing.T) {
	cases := map[string]struct {
		reason string
		field  string
		path   change.Path
		want   bool
	}{
		"Same":   {"It is the path.", "spec.size", change.Path{fieldpath.Field("spec"), fieldpath.Field("size")}, true},
		"Above":  {"It is above the path.", "spec", change.Path{fieldpath.Field("spec"), fieldpath.Field("size")}, true},
		"Below":  {"It is below the path.", "spec.size", change.Path{fieldpath.Field("spec")}, false},
		"Longer": {"A name that goes on is another.", "spec.size", change.Path{fieldpath.Field("spec"), fieldpath.Field("sizes")}, false},
		"Star":   {"A key may end in a star.", "spec.data.t*", change.Path{fieldpath.Field("spec"), fieldpath.Field("data"), fieldpath.Field("t1")}, false},
		"Dotted": {"So may one in brackets.", "data[a.t*]", change.Path{fieldpath.Field("data"), fieldpath.Field("a.t1")}, false},
		"Alone":  {"Or be one.", "data[*]", change.Path{fieldpath.Field("data"), fieldpath.Field("t1")}, false},
		"Itself": {"It is its own.", "data[a.t*]", change.Path{fieldpath.Field("data"), fieldpath.Field("a.t*")}, true},
		"Index":  {"An index is no key.", "spec.l[1]", change.Path{fieldpath.Field("spec"), fieldpath.Field("l"), fieldpath.Field("1")}, false},
		"Create": {"A creation is one.", "create", change.Create().Path, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := change.FieldCovers(tc.field, tc.path); got != tc.want {
				t.Errorf("%s\n%q covers %q: %v, want %v", tc.reason, tc.field, tc.path, got, tc.want)
			}
		})
	}
}
