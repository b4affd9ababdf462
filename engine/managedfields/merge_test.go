// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const manager = "apiextensions.crossplane.io/composed/abc"

const live = `
apiVersion: v1
kind: Thing
metadata:
  name: a
  managedFields:
  - manager: apiextensions.crossplane.io/composed/abc
    operation: Apply
    fieldsV1:
      "f:spec":
        "f:size": {}
        "f:gone": {}
        "f:nested": {".": {}, "f:mine": {}}
        "f:ports":
          'k:{"name":"http"}': {".": {}, "f:name": {}, "f:port": {}}
          'k:{"name":"old"}': {".": {}, "f:name": {}, "f:port": {}}
        "f:atomic": {}
  - manager: provider
    operation: Update
    fieldsV1: {"f:spec": {"f:defaulted": {}, "f:nested": {"f:theirs": {}}}}
spec:
  size: small
  gone: soon
  defaulted: yes
  nested: {mine: 1, theirs: 2}
  ports: [{name: http, port: 80, protocol: TCP}, {name: other, port: 1}, {name: old, port: 2}]
  atomic: [a, b]
`

func decode(t *testing.T, text string) map[string]any {
	t.Helper()

	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}

	return m
}

func spec(m map[string]any) any { return m["spec"] }

func TestApplyingIsForeseen(t *testing.T) {
	cases := map[string]struct {
		reason        string
		desired, want string
	}{
		"Same": {
			reason:  "What is desired already changes nothing, and others' fields stay.",
			desired: "{spec: {size: small, gone: soon, nested: {mine: 1}, ports: [{name: http, port: 80}, {name: old, port: 2}], atomic: [a, b]}}",
			want: "{spec: {size: small, gone: soon, defaulted: yes, nested: {mine: 1, theirs: 2}, " +
				"ports: [{name: http, port: 80, protocol: TCP}, {name: other, port: 1}, {name: old, port: 2}], atomic: [a, b]}}",
		},
		"Less": {
			reason:  "What is no longer desired goes where it is owned, and only there.",
			desired: "{spec: {size: large, ports: [{name: http, port: 81}, {name: new, port: 3}], atomic: [b]}}",
			want: "{spec: {size: large, defaulted: yes, nested: {theirs: 2}, " +
				"ports: [{name: http, port: 81, protocol: TCP}, {name: other, port: 1}, {name: new, port: 3}], atomic: [b]}}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := decode(t, live)

			owned, err := managedfields.Of(&unstructured.Unstructured{Object: obj}, manager)
			if err != nil {
				t.Fatal(err)
			}

			got := managedfields.Merge(obj, decode(t, tc.desired), owned)
			if diff := cmp.Diff(spec(decode(t, tc.want)), spec(got)); diff != "" {
				t.Errorf("%s\nMerge, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestExtractingAndApplyingChangesNothing(t *testing.T) {
	obj := decode(t, live)

	owned, err := managedfields.Of(&unstructured.Unstructured{Object: obj}, manager)
	if err != nil {
		t.Fatal(err)
	}

	got := managedfields.Merge(obj, managedfields.Extract(obj, owned), owned)
	if diff := cmp.Diff(spec(obj), spec(got)); diff != "" {
		t.Errorf("-live, +applied:\n%s", diff)
	}
}

const associative = `
metadata:
  ownerReferences: [{uid: u1, name: xr}]
  managedFields:
  - manager: apiextensions.crossplane.io/composed/abc
    operation: Apply
    fieldsV1:
      "f:metadata": {"f:ownerReferences": {'k:{"uid":"u1"}': {}}}
      "f:spec":
        "f:set": {'v:"mine"': {}, 'v:"also"': {}}
        "f:ports":
          'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}}
        "f:empty": {}
  - manager: kubectl
    operation: Apply
    fieldsV1: {"f:spec": {"f:set": {'v:"theirs"': {}}}}
  - manager: apiextensions.crossplane.io/composed/abc
    operation: Apply
    subresource: status
    fieldsV1: {"f:spec": {"f:other": {}}}
  - manager: apiextensions.crossplane.io/composed/abc
    operation: Update
    fieldsV1: {"f:spec": {"f:other": {}}}
spec:
  set: [mine, theirs, also]
  ports: [{port: 80, protocol: TCP, name: http, nodePort: 30000}, {port: 80, protocol: UDP}]
  other: x
  empty: {}
`

func TestElementsThatAreOwnedOneByOneGoOneByOne(t *testing.T) {
	cases := map[string]struct {
		reason        string
		desired, want string
	}{
		"All": {
			reason:  "What is owned and no longer mentioned goes; what others own, or this manager by other means, stays.",
			desired: "{}", want: "{set: [theirs], ports: [{port: 80, protocol: UDP}], other: x}",
		},
		"Some": {
			reason:  "A number is a key by its value, and a set is united.",
			desired: "{spec: {set: [new, mine], ports: [{port: 80, protocol: TCP, name: web}], empty: {a: 1}}}",
			want:    "{set: [new, mine, theirs], ports: [{port: 80, protocol: TCP, name: web, nodePort: 30000}, {port: 80, protocol: UDP}], other: x, empty: {a: 1}}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := normalized(t, associative)

			owned, err := managedfields.Of(&unstructured.Unstructured{Object: obj}, manager)
			if err != nil {
				t.Fatal(err)
			}

			got := managedfields.Merge(obj, normalized(t, tc.desired), owned)
			if diff := cmp.Diff(any(normalized(t, tc.want)), spec(got)); diff != "" {
				t.Errorf("%s\nMerge, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func normalized(t *testing.T, text string) map[string]any {
	t.Helper()

	m, ok := fixture.Decoded(decode(t, text)).(map[string]any)
	if !ok {
		t.Fatal("not a map")
	}

	return m
}

func TestManagedFieldsThatCannotBeReadAreAnError(t *testing.T) {
	obj := decode(t, "{kind: Thing, metadata: {name: a, managedFields: [{manager: apiextensions.crossplane.io/composed/abc, operation: Apply, fieldsV1: {'k:{': {}}}]}}")

	_, err := managedfields.Of(&unstructured.Unstructured{Object: obj}, manager)
	if err == nil || !strings.Contains(err.Error(), `cannot read managedFields of Thing "a"`) {
		t.Errorf("Owned: %v", err)
	}
}

func TestAnElementThatIsOwnedAsAWholeIsExtractedAsAWhole(t *testing.T) {
	obj := normalized(t, associative)

	owned, err := managedfields.Of(&unstructured.Unstructured{Object: obj}, manager)
	if err != nil {
		t.Fatal(err)
	}

	extract := managedfields.Extract(obj, owned)
	if diff := cmp.Diff([]any{map[string]any{"uid": "u1", "name": "xr"}}, resource.List(extract, "metadata", "ownerReferences")); diff != "" {
		t.Errorf("an element that is owned as a whole, -want, +got:\n%s", diff)
	}

	if diff := cmp.Diff(spec(obj), spec(managedfields.Merge(obj, extract, owned))); diff != "" {
		t.Errorf("applying what is owned, -live, +applied:\n%s", diff)
	}
}
