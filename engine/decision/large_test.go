// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

const (
	// maxBytes is the most that etcd takes of one object by default.
	maxBytes = 3 << 19
	// maxLevels is deeper than people write.
	maxLevels = 100
	// elements are in the list.
	elements = 10_000
)

// large is an object of some 1.5 MiB with a value at a depth of 100, and a list
// of named elements from the first given on.
func large(tb testing.TB, deep string, first int) *unstructured.Unstructured {
	tb.Helper()

	var nested any = deep

	for range maxLevels {
		nested = map[string]any{"next": []any{nested}, "beside": "x"}
	}

	list := make([]any, 0, elements-first)

	for i := first; i < elements; i++ {
		list = append(list, map[string]any{
			"name": fmt.Sprintf("element-%d", i), "text": strings.Repeat("x", 64), "weight": int64(i),
		})
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "large", "generation": int64(1)},
		"spec":     map[string]any{"nested": nested, "list": list, "ballast": strings.Repeat("y", maxBytes-elements*112)},
	}}
}

func TestALargeAndDeepObjectIsNoTrouble(t *testing.T) {
	old, obj := large(t, "a", 0), large(t, "b", elements/2)

	raw, err := json.Marshal(old.Object)
	if err != nil || len(raw) < maxBytes {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}

	d := decision.Decide(request.Request{Operation: request.OperationUpdate, Old: old, New: obj, ParentGone: true, Action: v1alpha1.ActionHold})

	const removed = elements / 2 * 3 // Their fields.
	if len(d.Findings) != removed+1 {
		t.Errorf("%d findings, want those of the removed elements and the deep one", len(d.Findings))
	}

	deepest := "spec.nested" + strings.Repeat(".next[0]", maxLevels)
	if f := d.Findings[removed].Change; f.Field != deepest || f.From != "a" || f.To != "b" {
		t.Errorf("the last finding is %.80s...", f.Field)
	}

	again := decision.Decide(request.Request{Operation: request.OperationUpdate, Old: old, New: d.Object, ParentGone: true})
	if len(again.Findings) > 0 {
		t.Errorf("all is held, but %d fields differ", len(again.Findings))
	}
}

// BenchmarkDecideLarge measures one change in an object of 1.5 MiB and 100
// levels, beside decoding it from JSON.
func BenchmarkDecideLarge(b *testing.B) {
	req := request.Request{Operation: request.OperationUpdate, Old: large(b, "a", 0), New: large(b, "b", 0), ParentGone: true}

	b.Run("size=1.5MiB/by=kausality", func(b *testing.B) {
		b.ReportAllocs()

		for b.Loop() {
			if d := decision.Decide(req); len(d.Findings) != 1 {
				b.Fatal(len(d.Findings))
			}
		}
	})
	b.Run("size=1.5MiB/by=json", func(b *testing.B) { decodeJSON(b, req.New) })
}
