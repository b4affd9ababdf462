// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"fmt"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

func Example() {
	was := map[string]any{"spec": map[string]any{"size": "small", "parts": []any{
		map[string]any{"name": "a"}, map[string]any{"name": "b", "weight": int64(1)},
	}}}
	is := map[string]any{"spec": map[string]any{"size": "large", "parts": []any{
		map[string]any{"name": "b", "weight": int64(2)},
	}}}

	for _, c := range change.Between(was, is) {
		fmt.Printf("%s: %v -> %v\n", c.Field, c.From, c.To)
	}

	// Keep the size as it was.
	size, _ := change.ParsePattern("spec.size")
	kept := change.Merge(was, is, func(c change.Change) bool { return size.Covers(c.Path) })
	fmt.Println(kept["spec"])

	// Output:
	// spec.parts[0].name: a -> <nil>
	// spec.parts[0].weight: 1 -> 2
	// spec.size: small -> large
	// map[parts:[map[name:b weight:2]] size:small]
}
