// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// values are JSON values of few different keys and scalars, so that two of
// them have much in common.
func values(depth int) *rapid.Generator[any] {
	scalars := rapid.SampledFrom([]any{"a", "b", "", int64(0), int64(1), 1.5, true, nil})
	if depth == 0 {
		return scalars
	}

	return rapid.OneOf(
		scalars,
		rapid.Map(objects(depth-1), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(values(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.SliceOfN(elements(depth-1), 0, 4), func(l []any) any { return l }),
	)
}

func objects(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b.c", "name", "metadata", "status", "0", "*", "x[", "create"}), values(depth), 0, 4)
}

// elements are maps with names.
func elements(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		m := objects(depth).Draw(t, "element")
		m["name"] = rapid.SampledFrom([]string{"p", "q", "r", "s"}).Draw(t, "name")

		return m
	})
}

func encode(tb rapid.TB, v any) []byte {
	tb.Helper()

	raw, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}

	return raw
}

// checkChanges checks what is true of any two objects.
func checkChanges(tb rapid.TB, oldObj, newObj map[string]any) {
	tb.Helper()

	before := encode(tb, []any{oldObj, newObj})

	if same := change.Between(oldObj, oldObj); len(same) > 0 {
		tb.Errorf("an object differs from itself: %+v", same)
	}

	changes := change.Between(oldObj, newObj)

	for i, c := range changes {
		if i > 0 && c.Same(changes[i-1]) {
			tb.Errorf("a change is there twice: %+v", c)
		}

		if !c.Addition() && !c.Removal() && change.Equal(c.From, c.To) {
			tb.Errorf("a change of nothing: %+v", c)
		}
	}

	none := change.Merge(oldObj, newObj, func(change.Change) bool { return false })
	if left := change.Between(newObj, none); len(left) > 0 {
		tb.Errorf("nothing held, but it differs from the new object: %+v", left)
	}

	asked := 0
	all := change.Merge(oldObj, newObj, func(change.Change) bool {
		asked++

		return true
	})

	if left := change.Between(oldObj, all); len(left) > 0 {
		tb.Errorf("all held, but it differs from the old object: %+v\nmerged: %v", left, all)
	}

	if asked != len(changes) {
		tb.Errorf("asked about %d changes, found %d", asked, len(changes))
	}

	if after := encode(tb, []any{oldObj, newObj}); !bytes.Equal(before, after) {
		tb.Errorf("the arguments were changed, -before, +after:\n%s", cmp.Diff(string(before), string(after)))
	}
}

func TestChangesOfAnyTwoObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkChanges(t, objects(3).Draw(t, "old"), objects(3).Draw(t, "new"))
	})
}

func FuzzBetween(f *testing.F) {
	all, err := corpus.All()
	if err != nil {
		f.Fatal(err)
	}

	for _, s := range all {
		if s.Old == nil || s.New == nil {
			continue
		}

		f.Add(encode(f, s.Old.Object), encode(f, s.New.Object))
	}

	f.Fuzz(func(t *testing.T, a, b []byte) {
		var oldObj, newObj map[string]any
		if json.Unmarshal(a, &oldObj) != nil || json.Unmarshal(b, &newObj) != nil {
			return
		}

		oldObj, _ = fixture.Decoded(oldObj).(map[string]any)
		newObj, _ = fixture.Decoded(newObj).(map[string]any)

		checkChanges(t, oldObj, newObj)
	})
}

// checkPattern holds the quick ways of path.go against those that parse.
func checkPattern(tb rapid.TB, text, other string) {
	tb.Helper()

	q, err := change.ParsePattern(other)
	if err != nil {
		return
	}

	p, err := change.ParsePattern(text)
	want := err == nil && p.Covers(q.Segments())

	if got := change.CoversText(text, q.Segments()); got != want {
		tb.Errorf("CoversText(%q, %q) = %v, the parsed pattern says %v", text, other, got, want)
	}
}

func TestAPatternCoversTheSameParsedOrNot(t *testing.T) {
	paths := rapid.OneOf(
		rapid.StringMatching(`[a-c*]([.][a-c*]|[\[][0-9a-c*]{1,2}[\]]){0,3}`),
		rapid.StringMatching(`[a-b.\[\]0'"*]{0,8}`),
	)

	rapid.Check(t, func(t *rapid.T) {
		checkPattern(t, paths.Draw(t, "pattern"), paths.Draw(t, "path"))
	})
}

func FuzzParsePattern(f *testing.F) {
	paths, err := corpus.Paths()
	if err != nil {
		f.Fatal(err)
	}

	for i, p := range paths {
		f.Add(p, paths[(i+1)%len(paths)])
		f.Add(p, p)
	}

	f.Fuzz(func(t *testing.T, text, other string) {
		p, err := change.ParsePattern(text)
		if err == nil && (p.String() != text || !p.Covers(p.Segments())) {
			t.Errorf("%q does not cover itself: %q, %v", text, p, p.Segments())
		}

		checkPattern(t, text, other)
		checkPattern(t, text, text)
	})
}

// TestWhatVersionsShareIsNoChange compares versions that share parts with copies that do not.
func TestWhatVersionsShareIsNoChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		oldObj := objects(3).Draw(t, "old")
		newObj, _ := sharing(t, oldObj).(map[string]any)

		var apart map[string]any
		if err := json.Unmarshal(encode(t, newObj), &apart); err != nil {
			t.Fatal(err)
		}

		apart, _ = fixture.Decoded(apart).(map[string]any)

		if change.Equal(oldObj, newObj) != change.Equal(oldObj, apart) {
			t.Errorf("equal: %t, and %t as copies", change.Equal(oldObj, newObj), change.Equal(oldObj, apart))
		}

		if diff := cmp.Diff(change.Between(oldObj, apart), change.Between(oldObj, newObj)); diff != "" {
			t.Errorf("-apart, +shared:\n%s", diff)
		}
	})
}

// sharing is another version of a value, which has parts of it, at their places or at others.
func sharing(t *rapid.T, v any) any {
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		return v
	case 1:
		return values(1).Draw(t, "other")
	}

	switch was := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(was)) {
			out[key] = sharing(t, was[key])
		}

		return out
	case []any:
		from := rapid.IntRange(0, len(was)).Draw(t, "from")
		to := rapid.IntRange(from, len(was)).Draw(t, "to")

		return was[from:to:to]
	default:
		return v
	}
}
