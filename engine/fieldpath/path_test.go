// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpath_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	original "github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// paths are texts that are paths, or nearly so.
func paths() []string {
	return []string{
		"", "spec", "spec.size", "metadata.annotations[kausality.io/trace]", "spec.containers[0].image", "spec.list[0][8]", "[42]",
		"spec.list[*].name", "spec.*", "spec.list[007]", "spec.list[4294967295]", "spec.list[4294967296]", "spec.list[-1]", "spec.list[+1]",
		"a[0]b", "data['.config.yml']", `data["a"]`, "''", "a.''", "''.a", "ä.ö[ü]", " ", "a b. c",
		".", ".a", "a.", "a..b", "a.[0]", "a[", "a[0", "a[]", "a]", "a[0]]", "a[[0]]", "a[0].", "a[.]", "a[b[c]d]", "a.]", "[", "]", "[]",
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range paths() {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) { check(t, text) })
}

// check compares what is made of a text with what crossplane-runtime makes of it.
func check(t *testing.T, text string) {
	t.Helper()

	want, wantErr := original.Parse(text)
	got, err := fieldpath.Parse(text)

	if (err == nil) != (wantErr == nil) {
		t.Fatalf("Parse(%q): %v, want %v", text, err, wantErr)
	}

	if err != nil {
		if err.Error() != wantErr.Error() {
			t.Errorf("Parse(%q): %q, want %q", text, err, wantErr)
		}

		return
	}

	if got.String() != want.String() {
		t.Errorf("Parse(%q).String() is %q, want %q", text, got, want)
	}

	if len(got) != len(want) {
		t.Fatalf("Parse(%q) has %d segments, want %d", text, len(got), len(want))
	}

	for i := range got {
		if int(got[i].Type) != int(want[i].Type) || got[i].Field != want[i].Field || got[i].Index != want[i].Index {
			t.Errorf("Parse(%q)[%d] is %+v, want %+v", text, i, got[i], want[i])
		}
	}
}

// FuzzValue reads values out of objects, as crossplane-runtime does.
func FuzzValue(f *testing.F) {
	const object = `{"spec": {"size": "small", "list": [{"name": "a"}, [1, null]], "none": null, "a.b": {"c": true}, "*": 1}}`

	for _, path := range append(paths(), "spec.list[0].name", "spec.list[1][0]", "spec.list[1][1]", "spec.list[1][1].x", "spec.list[2]",
		"spec.none", "spec.none.x", "spec[a.b].c", "spec.size.x", "spec.size[0]", "spec[0]", "spec.list.name", "spec[*]", "status") {
		f.Add(object, path)
	}

	f.Fuzz(func(t *testing.T, text, path string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}

		want, err := original.Pave(object).GetValue(path)
		got, ok := fieldpath.Value(object, path)

		// Of the empty path the original has nothing, and no error.
		if ok != (err == nil && path != "") || !reflect.DeepEqual(got, want) {
			t.Errorf("Value(%s, %q) is %v, %t, want %v, %v", text, path, got, ok, want, err)
		}
	})
}

// FuzzExpand expands wildcards, as crossplane-runtime does.
func FuzzExpand(f *testing.F) {
	const object = `{"spec": {"list": [{"name": "a", "args": ["x", "y"]}, {"name": "b"}], "mixed": [{"name": "a"}, 1], "none": null, "empty": {}, "quoted": {"'a'": 1}}}`

	for _, path := range append(paths(), "spec.list[*].name", "spec.list[*].args[*]", "spec[*]", "spec.*", "spec.mixed[*].name", "spec.none[*]",
		"spec.none.x[*]", "spec.empty[*]", "spec.list[0][*]", "spec.list.name[*]", "spec.list[9][*]", "spec.list[*][*]", "spec.missing[*]", "spec.quoted[*]") {
		f.Add(object, path)
	}

	f.Fuzz(func(t *testing.T, text, path string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}

		p, err := fieldpath.Parse(path)
		if err != nil {
			return
		}

		want, err := original.Pave(object).ExpandWildcards(path)
		paths, ok := p.Expand(object)

		got := make([]string, len(paths))
		for i := range paths {
			got[i] = paths[i].String()
		}

		slices.Sort(want)
		slices.Sort(got)

		if ok != (err == nil) || !slices.Equal(got, want) {
			t.Errorf("Expand(%s, %q) is %q, %t, want %q, %v", text, path, got, ok, want, err)
		}
	})
}

func TestFieldsOfAPath(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]string{
		"spec.size":                    {"spec", "size"},
		"metadata.annotations[a.b/c]":  {"metadata", "annotations", "a.b/c"},
		"spec.containers[0].image":     nil,
		"spec.containers[*].resources": {"spec", "containers", "*", "resources"},
	} {
		p, err := fieldpath.Parse(text)
		if err != nil {
			t.Fatal(err)
		}

		got, ok := p.Fields()
		if diff := cmp.Diff(want, got); diff != "" || ok != (want != nil) {
			t.Errorf("%s: %t, -want, +got:\n%s", text, ok, diff)
		}
	}
}
