// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

func TestLocateFindsWhatElementsStandFor(t *testing.T) {
	const object = `{spec: {users: [{name: a, role: x, groups: [p, q]}, {name: b, port: 80}, {name: c}, {name: c, port: 80}]}}`

	key := func(text string) any {
		var out map[string]any
		if err := yaml.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}

		return out
	}

	for name, tc := range map[string]struct {
		elements []any
		want     string // Empty for none.
	}{
		"Field":       {elements: []any{"spec", "size"}, want: "spec.size"},
		"Element":     {elements: []any{"spec", "users", key("{name: b}"), "role"}, want: "spec.users[1].role"},
		"TwoKeys":     {elements: []any{"spec", "users", key("{name: c, port: 80}")}, want: "spec.users[3]"},
		"Index":       {elements: []any{"spec", "users", key("{name: a}"), "groups", change.Unkeyed{Index: 1}}, want: "spec.users[0].groups[1]"},
		"NoElement":   {elements: []any{"spec", "users", key("{name: z}"), "role"}},
		"TwoElements": {elements: []any{"spec", "users", key("{name: c}")}},
		"NoList":      {elements: []any{"spec", "other", key("{name: b}")}},
		"NoElements":  {elements: []any{1.5}},
	} {
		t.Run(name, func(t *testing.T) {
			var obj map[string]any
			if err := yaml.Unmarshal([]byte(object), &obj); err != nil {
				t.Fatal(err)
			}

			path, ok := change.Locate(obj, tc.elements)
			if ok != (tc.want != "") || ok && path.String() != tc.want {
				t.Errorf("%v %v, want %q", path, ok, tc.want)
			}
		})
	}
}
