// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// editsBetween is what the webhook records of a write that changes one object into another: of two
// changes of one place the first value.
func editsBetween(before, after map[string]any) []v1alpha1.HeldChange {
	var out []v1alpha1.HeldChange

	for _, c := range change.Between(before, after) {
		e := v1alpha1.HeldChange{Field: c.Field, From: change.Text(c.From, math.MaxInt), Cause: &v1alpha1.Cause{User: "anna@example.com"}, Stored: &v1alpha1.StoredChange{}}
		if !slices.ContainsFunc(out, func(o v1alpha1.HeldChange) bool { return o.Field == e.Field }) {
			out = append(out, e)
		}
	}

	return out
}

func TestListsThatWereEditedArePutBack(t *testing.T) {
	t.Parallel()

	const bad = "bad"

	for name, tc := range map[string]struct {
		reason        string
		before, after string
		want          string
	}{
		"TakenOut": {
			reason: "An element that was taken out leaves the same record as one that was replaced, and no other one is overwritten.",
			before: "{list: [{name: a, v: x}, {name: b, v: z}]}", after: "{list: [{name: b, v: z}]}", want: bad,
		},
		"TakenOutLast": {
			reason: "Nor is one put back that was the last.", want: bad, before: "{list: [{name: a, v: x}, {name: b, v: z}]}", after: "{list: [{name: a, v: x}]}",
		},
		"Added":      {reason: "One that was added may have replaced another one.", want: bad, before: "{list: [{name: a, v: x}]}", after: "{list: [{name: a, v: x}, {name: b, v: q}]}"},
		"AddedFirst": {reason: "In front as well.", want: bad, before: "{list: [{name: a, v: x}]}", after: "{list: [{name: b, v: q}, {name: a, v: x}]}"},
		"Changed":    {reason: "A field of one is put back.", before: "{list: [{name: a, v: x}, {name: b, v: q}]}", after: "{list: [{name: a, v: z}, {name: b, v: q}]}"},
		"Word":       {reason: "Lists of words move up.", before: "{words: [a, b, c]}", after: "{words: [b, c]}"},
		"WordAdded":  {reason: "And down.", before: "{words: [a, b, c]}", after: "{words: [a, x, b, c]}"},
		"Emptied":    {reason: "A list may have lost all.", before: "{words: [a, b]}", after: "{words: []}"},
		"Reordered":  {reason: "The order of elements, which is recorded by their names, is put back.", before: "{list: [{name: a, v: x}, {name: b, v: z}]}", after: "{list: [{name: b, v: z}, {name: a, v: x}]}"},
		"ReorderedAndAdded": {
			reason: "But not of other elements than there were.", before: "{list: [{name: a, v: x}, {name: b, v: z}]}",
			after: "{list: [{name: b, v: z}, {name: c, v: x}, {name: a, v: x}]}", want: bad,
		},
		"Replaced": {reason: "As this one did.", before: "{list: [{name: a, v: x}]}", after: "{list: [{name: b, v: q}]}", want: bad},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			before, after := specOf(t, tc.before), specOf(t, tc.after)
			changed, list, stay := putBackAll(&unstructured.Unstructured{Object: after}, editsBetween(before, after), nil)

			if (len(stay) > 0) != (tc.want == bad) {
				t.Fatalf("%s\nstay %v, %d put back: %v", tc.reason, stay, len(list), changed.Object)
			}

			if diff := cmp.Diff(before, changed.Object); tc.want != bad && diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func specOf(t *testing.T, text string) map[string]any {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{spec: "+text+"}"), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u.Object
}

// TestWhatIsPutBackIsWhatWasThere or nothing is, whatever was edited in one write.
func TestWhatIsPutBackIsWhatWasThere(t *testing.T) {
	t.Parallel()

	refused, done := 0, 0

	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		element := rapid.Custom(func(t *rapid.T) any {
			return map[string]any{"name": word.Draw(t, "name"), "v": rapid.SampledFrom([]string{"x", "q"}).Draw(t, "v")}
		})
		object := rapid.Custom(func(t *rapid.T) map[string]any {
			drawn := rapid.SliceOfN(word, 0, 4).Draw(t, "words")

			words := make([]any, len(drawn))
			for i, w := range drawn {
				words[i] = w
			}

			byName := map[string]any{}
			for _, e := range rapid.SliceOfN(element, 0, 4).Draw(t, "list") {
				name, _ := e.(map[string]any)["name"].(string)
				byName[name] = e
			}

			order := rapid.Permutation(slices.Sorted(maps.Keys(byName))).Draw(t, "order")

			list := make([]any, len(order))
			for i, name := range order {
				list[i] = byName[name]
			}

			return map[string]any{"spec": map[string]any{"words": words, "list": list, "text": word.Draw(t, "text")}}
		})

		before, after := object.Draw(t, "before"), object.Draw(t, "after")
		if rapid.Bool().Draw(t, "the same elements") {
			list, _, _ := unstructured.NestedSlice(before, "spec", "list")
			for i := range list {
				if e, ok := list[i].(map[string]any); ok {
					e["v"] = rapid.SampledFrom([]string{"x", "q"}).Draw(t, "v")
				}
			}

			_ = unstructured.SetNestedSlice(after, list, "spec", "list")
		}

		changed, list, stay := putBackAll(&unstructured.Unstructured{Object: after}, editsBetween(before, after), nil)
		if len(stay) > 0 {
			refused++

			return
		}

		done++

		if diff := cmp.Diff(before, changed.Object); diff != "" {
			was, _ := json.Marshal(before)
			is, _ := json.Marshal(after)
			t.Fatalf("%d put back of %s -> %s, -want, +got:\n%s", len(list), was, is, diff)
		}
	})

	if done == 0 || refused == 0 {
		t.Errorf("%d put back, %d refused", done, refused)
	}

	t.Logf("%d put back, %d refused", done, refused)
}
