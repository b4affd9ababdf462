// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
)

const written = `
apiVersion: example.org/v1
kind: Bucket
metadata:
  name: b
  managedFields:
  - {manager: kubectl, operation: Update, time: "2026-01-01T10:00:00Z", fieldsV1: {"f:spec": {".": {}, "f:size": {}, "f:region": {}}}}
  - {manager: ui, operation: Apply, time: "2026-01-02T10:00:00Z", fieldsV1: {"f:spec": {"f:size": {}, "f:parts": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:x": {}}}}}}
  - {manager: status, operation: Update, subresource: status, time: "2026-01-03T10:00:00Z", fieldsV1: {"f:status": {"f:x": {}}}}
spec: {size: 20, region: eu, parts: [{name: b, x: 1}, {name: a, x: 2}], class: c}
`

func TestTheLastWriterOfAFieldIsTheOneOfSeveralManagersWhoWroteLast(t *testing.T) {
	t.Parallel()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(written), &u.Object); err != nil {
		t.Fatal(err)
	}

	at := func(day int) time.Time { return time.Date(2026, 1, day, 10, 0, 0, 0, time.UTC) }

	for field, want := range map[string]managedfields.Writer{
		"spec.size":       {Manager: "ui", Time: at(2)},
		"spec.region":     {Manager: "kubectl", Time: at(1)},
		"spec.parts[1].x": {Manager: "ui", Time: at(2)},
		"spec.parts[0].x": {},
		"spec.class":      {},
	} {
		path, err := fieldpath.Parse(field)
		if err != nil {
			t.Fatal(err)
		}

		got, ok := managedfields.WriterOf(u, path)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want.Manager != "") {
			t.Errorf("WriterOf %s: %t, -want, +got:\n%s", field, ok, diff)
		}
	}

	u.Object["metadata"] = map[string]any{"name": "b", "managedFields": []any{map[string]any{
		"manager": "x", "fieldsV1": map[string]any{"k:{": map[string]any{}},
	}}}

	if w, ok := managedfields.WriterOf(u, fieldpath.Path{fieldpath.Field("spec")}); ok {
		t.Errorf("managedFields that cannot be read name %v", w)
	}
}
