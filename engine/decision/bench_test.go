// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
)

// BenchmarkDecide measures an allowed change of a managed resource beside the
// floor: decoding the two versions of it from JSON.
func BenchmarkDecide(b *testing.B) {
	req := request(b, crossplane(), managed, edit(b, managed, "size: small", "size: large"),
		annotated(b, edit(b, xr, "generation: 11", "generation: 12"), xrAllowances))

	var raw [2][]byte

	for i, u := range []any{req.Old.Object, req.New.Object} {
		text, err := json.Marshal(u)
		if err != nil {
			b.Fatal(err)
		}

		raw[i] = text
	}

	b.Run("managed/by=kausality", func(b *testing.B) {
		b.ReportAllocs()

		for b.Loop() {
			if d := decision.Decide(req); !d.Allowed() {
				b.Fatal("the change is allowed")
			}
		}
	})

	b.Run("managed/by=json", func(b *testing.B) {
		b.ReportAllocs()

		for b.Loop() {
			for _, text := range raw {
				var m map[string]any
				if err := json.Unmarshal(text, &m); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
