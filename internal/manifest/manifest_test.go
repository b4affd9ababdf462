// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/manifest"
)

const policies = `# A comment before it.
---
apiVersion: v1
kind: A
metadata: {name: first}
spec:
  match:
    fields:
    - spec.size
    - "spec.engine"   # In quotes.
  subjects:
  - kind: Group
    name: dba
---
kind: AList
items:
- kind: A
  metadata: {name: second, labels: {example.org/team: a}}
- {kind: A, metadata: {name: third}}
--- {kind: B}
`

func TestFieldsHaveTheirPlaces(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		text   string
		object int
		path   string
		want   manifest.Position
	}{
		"Object":      {reason: "An object begins at its first key.", text: policies, path: "", want: manifest.Position{Line: 3, Column: 1}},
		"Key":         {reason: "A field is where its key is.", text: policies, path: "spec.match", want: manifest.Position{Line: 7, Column: 3}},
		"Flow":        {reason: "So it is in one line.", text: policies, path: "metadata.name", want: manifest.Position{Line: 5, Column: 12}},
		"Element":     {reason: "An element of a list is where it begins.", text: policies, path: "spec.match.fields[1]", want: manifest.Position{Line: 10, Column: 7}},
		"Below":       {reason: "A field of an element is where its key is.", text: policies, path: "spec.subjects[0].name", want: manifest.Position{Line: 13, Column: 5}},
		"Missing":     {reason: "What is missing is where it would be in.", text: policies, path: "spec.match.kind", want: manifest.Position{Line: 7, Column: 3}},
		"BeyondEnd":   {reason: "So is an element that is not there.", text: policies, path: "spec.match.fields[7]", want: manifest.Position{Line: 8, Column: 5}},
		"OfAScalar":   {reason: "A text has no fields.", text: policies, path: "kind.name", want: manifest.Position{Line: 4, Column: 1}},
		"NoPath":      {reason: "What is no path is about the object.", text: policies, path: "spec[", want: manifest.Position{Line: 3, Column: 1}},
		"Item":        {reason: "Items of a list are objects.", text: policies, object: 1, path: "metadata.name", want: manifest.Position{Line: 18, Column: 14}},
		"Label":       {reason: "Keys may have dots.", text: policies, object: 1, path: "metadata.labels[example.org/team]", want: manifest.Position{Line: 18, Column: 37}},
		"SecondItem":  {reason: "Each has its own place.", text: policies, object: 2, path: "", want: manifest.Position{Line: 19, Column: 3}},
		"SameLine":    {reason: "A document may begin behind the dashes.", text: policies, object: 3, path: "kind", want: manifest.Position{Line: 20, Column: 6}},
		"CRLF":        {reason: "Lines may end as on Windows.", text: "kind: A\r\n---\r\nkind: B\r\nspec: {}\r\n", object: 1, path: "spec", want: manifest.Position{Line: 4, Column: 1}},
		"ByteOrder":   {reason: "A mark at the beginning is no part of it.", text: "\uFEFFkind: A\n", path: "kind", want: manifest.Position{Line: 1, Column: 1}},
		"Characters":  {reason: "Columns are of characters.", text: `{name: "ä", kind: A}`, path: "kind", want: manifest.Position{Line: 1, Column: 13}},
		"JSON":        {reason: "JSON has places, too, also with tabs.", text: "{\n\t\"kind\": \"A\",\n\t\"spec\": {\"x\":\t1}\n}\n", path: "spec.x", want: manifest.Position{Line: 3, Column: 11}},
		"JSONStream":  {reason: "Objects of JSON may follow without a separator.", text: "{\"kind\": \"A\"}\n{\"kind\": \"B\"}{\"kind\":\n\"C\"}", object: 2, path: "kind", want: manifest.Position{Line: 2, Column: 15}},
		"Alias":       {reason: "An alias is where what it stands for is.", text: "base: &x {kind: B}\nspec: *x\n", path: "spec.kind", want: manifest.Position{Line: 1, Column: 11}},
		"Merge":       {reason: "So is what is merged.", text: "base: &x {kind: B}\nspec:\n  <<: *x\n  a: 1\n", path: "spec.kind", want: manifest.Position{Line: 1, Column: 11}},
		"MergeOfMany": {reason: "Several may be merged.", text: "a: &x {kind: B}\nb: &y {name: C}\nspec:\n  <<: [*x, *y]\n", path: "spec.name", want: manifest.Position{Line: 2, Column: 8}},
		"Twice":       {reason: "Of a key that is there twice the last one counts.", text: "kind: A\nspec: 1\nspec: 2\n", path: "spec", want: manifest.Position{Line: 3, Column: 1}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			objects, err := manifest.Read("f.yaml", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}

			if got := objects[tc.object].At(tc.path); got != tc.want {
				t.Errorf("%s\n%s: %v, want %v", tc.reason, tc.path, got, tc.want)
			}
		})
	}
}

func TestObjectsAreReadAsKubectlReadsThem(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		text   string
		want   []map[string]any
		errs   []string
	}{
		"Documents": {
			reason: "Empty documents are none, and lists are their items.",
			text:   "---\n# Nothing.\n---\n" + policies + "---\n",
			want: []map[string]any{
				{
					"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "first"}, "spec": map[string]any{
						"match":    map[string]any{"fields": []any{"spec.size", "spec.engine"}},
						"subjects": []any{map[string]any{"kind": "Group", "name": "dba"}},
					},
				},
				{"kind": "A", "metadata": map[string]any{"name": "second", "labels": map[string]any{"example.org/team": "a"}}},
				{"kind": "A", "metadata": map[string]any{"name": "third"}},
				{"kind": "B"},
			},
		},
		"Values": {
			reason: "Values are what they are in YAML 1.1, and times are texts.",
			text:   "kind: A\na: yes\nb: 1\nc: 1.5\nd: 2026-01-05T09:00:00Z\ne: \"1\"\n",
			want:   []map[string]any{{"kind": "A", "a": true, "b": int64(1), "c": 1.5, "d": "2026-01-05T09:00:00Z", "e": "1"}},
		},
		"NoObject": {
			reason: "What is no object is one without content.",
			text:   "- a\n- b\n---\nkind: B\n",
			want:   []map[string]any{nil, {"kind": "B"}},
		},
		"Broken": {
			reason: "A document that cannot be read is named with its line, and the others are read.",
			text:   "kind: A\n---\nkind: B\n  name: x\n---\nkind: C\n",
			want:   []map[string]any{{"kind": "A"}, {"kind": "C"}},
			errs:   []string{"cannot read f.yaml: ", "line 4"},
		},
		"Braces": {
			reason: "YAML may begin with a brace.",
			text:   "{kind: A}\n---\n{kind: B}\n",
			want:   []map[string]any{{"kind": "A"}, {"kind": "B"}},
		},
		"Separator": {
			reason: "Dashes in a text separate nothing.",
			text:   "kind: A\ntext: |\n  ---\n  b\nother: ---x\n",
			want:   []map[string]any{{"kind": "A", "text": "---\nb\n", "other": "---x"}},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text := []byte(tc.text)
			objects, err := manifest.Read("f.yaml", text)

			got := make([]map[string]any, 0, len(objects))
			for _, o := range objects {
				got = append(got, o.Content)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if (err != nil) != (tc.errs != nil) {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}

			for _, want := range tc.errs {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s\nerror %v, want %q", tc.reason, err, want)
				}
			}

			if string(text) != tc.text {
				t.Errorf("%s\nthe text was modified", tc.reason)
			}
		})
	}
}

func TestKeysThatAreThereTwiceAreFound(t *testing.T) {
	t.Parallel()

	objects, err := manifest.Read("f.yaml", []byte("kind: A\nspec:\n  a: 1\n  list:\n  - {x: 1, x: 2}\n  a: 2\n---\nkind: B\nspec: {a: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}

	want := []manifest.Duplicate{
		{Path: "spec.list[0].x", Position: manifest.Position{Line: 5, Column: 12}},
		{Path: "spec.a", Position: manifest.Position{Line: 6, Column: 3}},
	}
	if diff := cmp.Diff(want, objects[0].Duplicates()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if got := objects[1].Duplicates(); len(got) > 0 {
		t.Errorf("%v, want none", got)
	}
}
