// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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

	cases := map[string]struct {
		reason   string
		old, obj string
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
		"MissingKey": {
			reason: "Elements that lack the keys are matched by index.",
			old:    "{spec: {ports: [{to: a}, {to: b}]}" + managed + "}", obj: "{spec: {ports: [{to: b}]}}",
			want: []string{"spec.ports[0].to", "spec.ports[1].to"},
		},
		"DefaultedKey": {
			reason: "A key that is left out is one too.",
			old:    "{spec: {ports: [{port: 1}, {port: 2, protocol: UDP}]}" + managed + "}", obj: "{spec: {ports: [{port: 2, protocol: UDP}]}}",
			want: []string{"spec.ports[0].port"},
		},
		"SameKeyTwice": {
			reason: "Two of one key are matched by index.",
			old:    "{spec: {ports: [{port: 1, to: a}, {port: 2, to: b}]}" + managed + "}", obj: "{spec: {ports: [{port: 1, to: a}, {port: 1, to: c}]}}",
			want: []string{"spec.ports[1].port", "spec.ports[1].to"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fieldsOf(change.Between(decode(t, tc.old), decode(t, tc.obj)))
			if diff := cmp.Diff(tc.want, got); len(tc.want)+len(got) > 0 && diff != "" {
				t.Errorf("%s\nBetween, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAHeldElementWithoutItsKeysIsNone(t *testing.T) {
	const managed = `, metadata: {managedFields: [{fieldsV1: {'f:l': {'k:{"a":1,"b":1}': {}}}}]}`

	old := decode(t, "{l: [{a: 1, b: 1}]"+managed+"}")
	got := change.Merge(old, decode(t, "{l: [{a: 1, b: 1}, {a: 2, b: 2, v: 3}]"+managed+"}"), func(c change.Change) bool {
		return slices.Contains([]string{"l[1].b"}, c.Field)
	})

	if diff := cmp.Diff(old, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
