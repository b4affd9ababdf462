// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

func fieldsOf(changes []change.Change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.Field
	}

	return out
}

func TestListsAreMatchedByTheirKeys(t *testing.T) {
	const (
		ports    = "{ports: [{port: 80, protocol: TCP, to: a}, {port: 53, protocol: UDP, to: b}]}"
		reversed = "{ports: [{port: 53, protocol: UDP, to: c}, {port: 80, protocol: TCP, to: a}]}"
		one      = "{ports: [{port: 53, protocol: UDP, to: b}]}"
		managed  = ", metadata: {managedFields: [{subresource: status, fieldsV1: {'f:spec': {'f:ports': {'k:{\"to\":\"a\"}': {}}}}}, " +
			"{fieldsV1: {'f:other': {}}}, {fieldsV1: {'f:spec': {'f:groups': {'k:{\"id\":1}': {}, 'k:{\"id\":2}': " +
			"{'f:ports': {'k:broken': {}, 'k:{\"port\":80,\"protocol\":\"TCP\"}': {'f:to': {}}}}}, " +
			"'f:ports': {'k:{\"port\":80,\"protocol\":\"TCP\"}': {}}}}}]}"
	)

	keyed := func(schema string) *spec.Schema {
		out := &spec.Schema{}
		if err := out.UnmarshalJSON([]byte(schema)); err != nil {
			t.Fatal(err)
		}

		return out
	}
	list := `{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {"type": "object"}}`

	cases := map[string]struct {
		reason   string
		old, obj string
		schema   *spec.Schema
		want     []string
	}{
		"None": {
			reason: "Without keys they are matched by index.", old: "{spec: " + ports + "}", obj: "{spec: " + one + "}",
			want: []string{
				"spec.ports[0].port", "spec.ports[0].protocol", "spec.ports[0].to",
				"spec.ports[1].port", "spec.ports[1].protocol", "spec.ports[1].to",
			},
		},
		"Managed": {
			reason: "managedFields show the keys, those of a subresource aside.",
			old:    "{spec: " + ports + managed + "}", obj: "{spec: " + reversed + "}", want: []string{"spec.ports", "spec.ports[0].to"},
		},
		"ManagedDeep": {
			reason: "Also those of a list in another one's elements.",
			old:    "{spec: {groups: [{id: 1, ports: []}, {id: 2, ports: [{port: 80, protocol: TCP}, {port: 53, protocol: UDP}]}]}" + managed + "}",
			obj:    "{spec: {groups: [{id: 2, ports: [{port: 53, protocol: UDP}]}, {id: 1, ports: []}]}}",
			want:   []string{"spec.groups", "spec.groups[0].ports[0].port", "spec.groups[0].ports[0].protocol"},
		},
		"Schema": {
			reason: "So does a schema.", old: "{spec: " + ports + "}", obj: "{spec: " + reversed + "}", want: []string{"spec.ports", "spec.ports[0].to"},
			schema: keyed(`{"properties": {"spec": {"properties": {"ports": ` + list + `}}}}`),
		},
		"SchemaDeep": {
			reason: "Through maps and lists.",
			old:    "{spec: [{x: " + ports + "}]}", obj: "{spec: [{x: " + reversed + "}]}", want: []string{"spec[0].x.ports", "spec[0].x.ports[0].to"},
			schema: keyed(`{"properties": {"spec": {"items": {"additionalProperties": {"properties": {"ports": ` + list + `}}}}}}`),
		},
		"SchemaElsewhere": {
			reason: "One that says nothing of the list does not.", old: "{spec: " + ports + "}", obj: "{spec: " + ports + "}",
			schema: keyed(`{"properties": {"status": {}}}`),
		},
		"SchemaUnknown": {
			reason: "Nor one without properties.", old: "{spec: {l: [{a: 1}, {a: 2}]}}", obj: "{spec: {l: [{a: 2}]}}",
			schema: keyed(`{"type": "object"}`), want: []string{"spec.l[0].a", "spec.l[1].a"},
		},
		"MissingKey": {
			reason: "Elements that lack the keys are matched by index.",
			old:    "{spec: {ports: [{to: a}, {to: b}]}}", obj: "{spec: {ports: [{to: b}]}}",
			schema: keyed(`{"properties": {"spec": {"properties": {"ports": ` + list + `}}}}`), want: []string{"spec.ports[0].to", "spec.ports[1].to"},
		},
		"DefaultedKey": {
			reason: "A key that is left out is one too.",
			old:    "{spec: {ports: [{port: 1}, {port: 2, protocol: UDP}]}}", obj: "{spec: {ports: [{port: 2, protocol: UDP}]}}",
			schema: keyed(`{"properties": {"spec": {"properties": {"ports": ` + list + `}}}}`), want: []string{"spec.ports[0].port"},
		},
		"SameKeyTwice": {
			reason: "Two of one key are matched by index.",
			old:    "{spec: {ports: [{port: 1, to: a}, {port: 2, to: b}]}}", obj: "{spec: {ports: [{port: 1, to: a}, {port: 1, to: c}]}}",
			schema: keyed(`{"properties": {"spec": {"properties": {"ports": ` + list + `}}}}`), want: []string{"spec.ports[1].port", "spec.ports[1].to"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var keys []change.ListKeys
			if tc.schema != nil {
				keys = append(keys, change.SchemaKeys(tc.schema))
			}

			got := fieldsOf(change.Between(decode(t, tc.old), decode(t, tc.obj), keys...))
			if diff := cmp.Diff(tc.want, got); len(tc.want)+len(got) > 0 && diff != "" {
				t.Errorf("%s\nBetween, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAHeldElementWithoutItsKeysIsNone(t *testing.T) {
	schema := &spec.Schema{}
	if err := schema.UnmarshalJSON([]byte(`{"properties": {"l": {"x-kubernetes-list-map-keys": ["a", "b"]}}}`)); err != nil {
		t.Fatal(err)
	}

	got := change.Merge(decode(t, "{l: [{a: 1, b: 1}]}"), decode(t, "{l: [{a: 1, b: 1}, {a: 2, b: 2, v: 3}]}"), func(c change.Change) bool {
		return slices.Contains([]string{"l[1].b"}, c.Field)
	}, change.SchemaKeys(schema))

	if diff := cmp.Diff(decode(t, "{l: [{a: 1, b: 1}]}"), got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
