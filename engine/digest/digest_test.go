// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package digest_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
)

func base() digest.Change {
	return digest.Change{
		Kind: schema.GroupKind{Group: "rds.example.org", Kind: "Instance"}, UID: "a", Operation: digest.Update,
		Elements: []any{"spec", "forProvider", "engineVersion"}, From: "14", To: "17", Follows: []string{"Update"},
	}
}

// TestADigestIsOfOneChangeAlone and of all that distinguishes it from others.
func TestADigestIsOfOneChangeAlone(t *testing.T) {
	was := digest.Of(base())
	if !strings.HasPrefix(was, digest.Prefix) || len(was) != len(digest.Prefix)+64 {
		t.Fatalf("digest %q", was)
	}

	cases := map[string]func(*digest.Change){
		"another object":               func(c *digest.Change) { c.UID = "b" },
		"another kind":                 func(c *digest.Change) { c.Kind.Kind = "Cluster" },
		"another group":                func(c *digest.Change) { c.Kind.Group = "" },
		"another field":                func(c *digest.Change) { c.Elements = []any{"spec", "forProvider", "size"} },
		"a field of a name with a dot": func(c *digest.Change) { c.Elements = []any{"spec", "forProvider.engineVersion"} },
		"another value":                func(c *digest.Change) { c.To = "18" },
		"another type":                 func(c *digest.Change) { c.To = int64(17) },
		"another old value":            func(c *digest.Change) { c.From = "15" },
		"none from before":             func(c *digest.Change) { c.From = nil },
		"another operation":            func(c *digest.Change) { c.Operation = digest.Delete },
		"nothing follows":              func(c *digest.Change) { c.Follows = nil },
		"a name":                       func(c *digest.Change) { c.Name = "x" },
		"a hidden value":               func(c *digest.Change) { c.Masked = true },
	}

	seen := map[string]string{was: "the change"}

	for name, other := range cases {
		c := base()
		other(&c)

		got := digest.Of(c)
		if first, ok := seen[got]; ok {
			t.Errorf("%s has the digest of %s", name, first)
		}

		seen[got] = name
	}
}

// TestEqualValuesHaveOneDigest however they are written.
func TestEqualValuesHaveOneDigest(t *testing.T) {
	for name, pair := range map[string][2]any{
		"whole numbers":  {int64(3), float64(3)},
		"order of keys":  {map[string]any{"a": "1", "b": int64(2)}, map[string]any{"b": 2.0, "a": "1"}},
		"lists":          {[]any{int64(1)}, []any{1.0}},
		"great integers": {int64(1) << 60, int64(1) << 60},
	} {
		a, b := base(), base()
		a.To, b.To = pair[0], pair[1]

		if digest.Of(a) != digest.Of(b) {
			t.Errorf("%s: two digests", name)
		}
	}

	a, b := base(), base()
	a.To, b.To = int64(9007199254740993), int64(9007199254740992)

	if digest.Of(a) == digest.Of(b) {
		t.Error("great integers that differ in the last digit have one digest")
	}
}

// TestAnElementOfAListIsFoundByItsKeys whatever moves, and one without keys with the whole
// list.
func TestAnElementOfAListIsFoundByItsKeys(t *testing.T) {
	ports := func(names ...string) []any {
		out := make([]any, len(names))
		for i, n := range names {
			out[i] = map[string]any{"name": n, "port": int64(80)}
		}

		return out
	}
	object := func(list []any) map[string]any { return map[string]any{"spec": map[string]any{"ports": list}} }
	digestOf := func(was, is []any) string {
		changes := change.Between(object(was), object(is))
		if len(changes) != 1 {
			t.Fatalf("changes: %+v", changes)
		}

		c := base()
		c.Elements = change.NewLocator(object(was), object(is), digest.OfLists).Elements(changes[0])
		c.From, c.To = changes[0].From, changes[0].To

		return digest.Of(c)
	}
	with := func(list []any, i int, port int64) []any {
		out := slices.Clone(list)
		was, _ := out[i].(map[string]any)
		out[i] = map[string]any{"name": was["name"], "port": port}

		return out
	}

	first := digestOf(ports("a", "b"), with(ports("a", "b"), 1, 81))

	if moved := digestOf(ports("x", "a", "b"), with(ports("x", "a", "b"), 2, 81)); moved != first {
		t.Error("another element before it makes it another change")
	}

	if other := digestOf(ports("a", "b"), with(ports("a", "b"), 0, 81)); other == first {
		t.Error("the same change of another element is the same")
	}

	unkeyed := digestOf([]any{"a", "b"}, []any{"a", "c"})
	if shifted := digestOf([]any{"x", "b"}, []any{"x", "c"}); shifted == unkeyed {
		t.Error("a change at the same place of another list without keys is the same")
	}
}
