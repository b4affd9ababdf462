// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// TestRenumberedRecordsCompareAsBefore and have nothing left of the hashes.
func TestRenumberedRecordsCompareAsBefore(t *testing.T) {
	t.Parallel()

	object := func(size, color string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Box", "spec": map[string]any{"size": size, "color": color}}
	}
	text := func(o map[string]any) string {
		out, err := wish.RecordOf(o).Format("v1", "Box")
		if err != nil {
			t.Fatal(err)
		}

		return out
	}
	record := func(text string) *wish.Record {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Box"}}
		u.SetAnnotations(map[string]string{v1alpha1.AnnotationWish: text})

		out, err := wish.Parse(u)
		if err != nil {
			t.Fatal(err)
		}

		return out
	}

	was, is := object("small", "red"), object("large", "red")
	got := wish.Renumber(text(was), text(is), "", "no record")

	if got[0] == text(was) || got[1] == text(is) || got[2] != "" || got[3] != "no record" {
		t.Errorf("renumbered: %q", got)
	}

	for _, c := range change.Between(was, object("other", "other")) {
		if same, want := record(got[0]).Same(record(got[1]), was, c.Path), c.Field == "spec.color"; same != want {
			t.Errorf("%s: the same: %t, want %t", c.Field, same, want)
		}
	}

	// Others with values of their own have the same numbers.
	if other := wish.Renumber(text(object("a", "b")), text(object("c", "b"))); other[0] != got[0] && other[1] != got[1] {
		t.Errorf("the numbers say something of the values: %q, %q", got[:2], other)
	}
}
