// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const manager = "apiextensions.crossplane.io/composed/abc"

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

func decode(t *testing.T, text string) map[string]any {
	t.Helper()

	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}

	return m
}

func normalized(t *testing.T, text string) map[string]any {
	t.Helper()

	m, ok := fixture.Decoded(decode(t, text)).(map[string]any)
	if !ok {
		t.Fatal("not a map")
	}

	return m
}

func TestWhatOthersOwnStaysTheirs(t *testing.T) {
	cases := map[string]struct {
		reason                string
		desired, result, want string
	}{
		"Kept": {
			reason:  "Owned elements that nobody mentions are applied as they are, others' are not.",
			desired: "{}", result: "{spec: {set: [mine, theirs, also], ports: [{port: 80, protocol: TCP, name: http, nodePort: 30000}, {port: 80, protocol: UDP}]}}",
			want: "{spec: {set: [mine, also], ports: [{port: 80, protocol: TCP, name: http}]}}",
		},
		"HeldBack": {
			reason:  "A held value goes into the element that is desired, and others' elements stay out.",
			desired: "{spec: {set: [mine, new], ports: [{port: 80, protocol: TCP, name: web, appProtocol: h2}]}}",
			result:  "{spec: {set: [mine, theirs, also], ports: [{port: 80, protocol: TCP, name: http, appProtocol: h2, nodePort: 30000}, {port: 80, protocol: UDP}]}}",
			want:    "{spec: {set: [mine, also], ports: [{port: 80, protocol: TCP, name: http, appProtocol: h2}]}}",
		},
		"NotCreated": {
			reason:  "A held new element is left out.",
			desired: "{spec: {ports: [{port: 80, protocol: TCP, name: http}, {port: 81, protocol: TCP}]}}",
			result:  "{spec: {ports: [{port: 80, protocol: TCP, name: http, nodePort: 30000}, {port: 80, protocol: UDP}]}}",
			want:    "{spec: {ports: [{port: 80, protocol: TCP, name: http}]}}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := normalized(t, associative)

			owned, err := managedfields.Of(&unstructured.Unstructured{Object: obj}, manager)
			if err != nil {
				t.Fatal(err)
			}

			got, _ := wish.Compare(wish.Input{
				Wish:   &unstructured.Unstructured{Object: normalized(t, tc.desired)},
				Stored: &unstructured.Unstructured{Object: obj}, Fields: owned,
			}).Answer(normalized(t, tc.result))
			if diff := cmp.Diff(normalized(t, tc.want), got); diff != "" {
				t.Errorf("%s\nAnswer, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
