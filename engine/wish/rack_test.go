// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// racks is the schema of a kind with a list whose elements are their own keys,
// one whose elements have two keys, one with a default, and a part that has none.
const racks = `{
  "type": "object",
  "x-kubernetes-group-version-kind": [{"group": "example.org", "version": "v1", "kind": "Rack"}],
  "properties": {
    "apiVersion": {"type": "string"}, "kind": {"type": "string"},
    "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    "spec": {"type": "object", "properties": {
      "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
      "zones": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
      "slots": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {"type": "object", "required": ["port"], "properties": {
          "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "host": {"type": "string"}}}}}}}}`

const rack = `
apiVersion: example.org/v1
kind: Rack
metadata: {name: r}
spec:
  zones: [a, b, c]
  free: {any: {list: [1, x]}, data: {a: b}}
  slots: [{port: 1, protocol: TCP, host: web}, {port: 2, host: db}, {port: 3, protocol: UDP}, {port: 4, protocol: UDP, host: udp}, {port: 4, host: tcp}]
`

// newRacks stores Racks.
func newRacks(t *testing.T) *server {
	t.Helper()

	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Rack"}

	sch := &spec.Schema{}
	if err := json.Unmarshal([]byte(racks), sch); err != nil {
		t.Fatal(err)
	}

	converter, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"org.example.v1.Rack": sch}, false)
	if err != nil {
		t.Fatal(err)
	}

	s := &server{
		t: t, fields: managedfieldstest.NewFakeFieldManager(converter, kind),
		live:   &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "r"}}},
		custom: fillSlots,
	}
	s.live.SetGroupVersionKind(kind)

	return s
}

// fillSlots fills in the protocol of each slot that has none.
func fillSlots(object map[string]any) {
	for _, e := range resource.List(object, "spec", "slots") {
		if m, ok := e.(map[string]any); ok && m["protocol"] == nil {
			m["protocol"] = "TCP"
		}
	}
}

func TestWhatIsChangedByHandInAListWithKeysIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func(spec map[string]any)
		want   []string
	}{
		"Removed": {"A value that somebody took away is not put back unasked.", func(spec map[string]any) { spec["zones"] = []any{"a", "c"} }, []string{"spec.zones[1]", "spec.zones[2]"}},
		"AllRemoved": {
			"So are all of them.", func(spec map[string]any) { delete(spec, "zones") },
			[]string{"spec.zones[0]", "spec.zones[1]", "spec.zones[2]"},
		},
		"Swapped": {"Another order is seen.", func(spec map[string]any) { spec["zones"] = []any{"b", "a", "c"} }, []string{"spec.zones[0]", "spec.zones[1]"}},
		"Added":   {"What somebody added is that one's.", func(spec map[string]any) { spec["zones"] = []any{"a", "b", "new", "c"} }, nil},
		"Free": {"What has no schema stays where it is another's.", func(spec map[string]any) {
			resource.Map(spec, "free", "any")["list"] = []any{int64(2), "x"}
		}, []string{"spec.free.any.list[0]"}},
		"FreeRemoved": {"There, too, what somebody took away is not put back.", func(spec map[string]any) {
			delete(resource.Map(spec, "free", "data"), "a")
		}, []string{"spec.free.data.a"}},
		"ElementRemoved": {"So it is with elements that have two keys.", func(spec map[string]any) {
			spec["slots"] = resource.List(spec, "slots")[1:]
		}, []string{"spec.slots[0].host", "spec.slots[0].port", "spec.slots[0].protocol"}},
		"ElementsSwapped": {"And with their order.", func(spec map[string]any) {
			list := slices.Clone(resource.List(spec, "slots"))
			slices.Reverse(list)
			spec["slots"] = list
		}, []string{"spec.slots"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRacks(t)
			s.compose(rack, false)
			before := runtime.DeepCopyJSON(resource.Map(s.live.Object, "spec"))
			s.edit("kubectl", tc.edit)
			edited := runtime.DeepCopyJSON(resource.Map(s.live.Object, "spec"))

			s.unwritten(tc.reason, rack, tc.want...)

			if diff := cmp.Diff(edited, resource.Map(s.live.Object, "spec")); diff != "" {
				t.Errorf("put back though it is held, -before, +after:\n%s", diff)
			}

			if len(tc.want) == 0 {
				return
			}

			want(t, "put back", s.compose(rack, false), tc.want...)
			s.unwritten("settled", rack)

			if diff := cmp.Diff(before, resource.Map(s.live.Object, "spec")); diff != "" {
				t.Errorf("not put back, -before, +after:\n%s", diff)
			}
		})
	}
}

func TestEachChangeOfAListWithKeysIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"Removed":         {"[a, b, c]", "[a, c]", []string{"spec.zones[1]", "spec.zones[2]"}},
		"Swapped":         {"[a, b, c]", "[b, a, c]", []string{"spec.zones[0]", "spec.zones[1]"}},
		"Added":           {"[a, b, c]", "[a, b, c, d]", []string{"spec.zones[3]"}},
		"ElementRemoved":  {", {port: 2, host: db}", "", []string{"spec.slots[1].host", "spec.slots[1].port", "spec.slots[1].protocol"}},
		"DefaultOfKey":    {"{port: 3, protocol: UDP}", "{port: 3}", []string{"spec.slots[2].port", "spec.slots[2].port", "spec.slots[2].protocol"}},
		"ElementsSwapped": {"{port: 1, protocol: TCP, host: web}, {port: 2, host: db}", "{port: 2, host: db}, {port: 1, protocol: TCP, host: web}", []string{"spec.slots"}},
		"Default":         {"{port: 2, host: db}", "{port: 2, protocol: TCP, host: db}", nil},
		"KeyRemoved": {"{port: 1, protocol: TCP, host: web}", "{protocol: TCP, host: web}", []string{
			"spec.slots[0].host", "spec.slots[0].host", "spec.slots[0].port", "spec.slots[0].protocol", "spec.slots[0].protocol",
		}},
		"DefaultRemoved": {"{port: 1, protocol: TCP, host: web}", "{port: 1, host: web}", nil},
		"BesideADefault": {"{port: 4, protocol: UDP", "{port: 4, protocol: SCTP", []string{
			"spec.slots[3].host", "spec.slots[3].host", "spec.slots[3].port", "spec.slots[3].port", "spec.slots[3].protocol", "spec.slots[3].protocol",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRacks(t)
			s.compose(rack, false)
			before := runtime.DeepCopyJSON(resource.Map(s.live.Object, "spec"))
			changed := swap(rack, tc.from, tc.to)

			s.unwritten("changed", changed, tc.want...)

			if diff := cmp.Diff(before, resource.Map(s.live.Object, "spec")); diff != "" {
				t.Errorf("what is held was applied, -before, +after:\n%s", diff)
			}

			s.unwritten("taken back", rack)
		})
	}
}
