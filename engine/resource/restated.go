// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// CompositeManager is the field manager under which Crossplane applies the status of an XR before it says how the XR is.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0,
// internal/controller/apiextensions/composite/composition_functions.go, FieldOwnerXR.
const CompositeManager = "apiextensions.crossplane.io/composite"

// Restated are the types of conditions that Crossplane sets anew at the end of each run of a pipeline with our function.
func Restated() []string {
	return []string{ConditionReady, ConditionSynced, v1alpha1.ConditionKausality, v1alpha1.ConditionState}
}

// KeepRestated returns the XR to store where Crossplane applies its status with the conditions that it read before it ran the
// pipeline: with those that are stored where it sets them anew at the end, for these are as new or newer, and where they say
// the same of as late a generation, since another time; nil where they are the same. Where that is all that is applied, who
// owns what stays too, and nothing is to be written.
func KeepRestated(stored, applied *unstructured.Unstructured) *unstructured.Unstructured {
	was, is := List(stored.Object, "status", "conditions"), slices.Clone(List(applied.Object, "status", "conditions"))
	same := true

	for i, c := range is {
		typ := typeOf(c)

		at := slices.IndexFunc(was, func(o any) bool { return typeOf(o) == typ })
		if at >= 0 && (slices.Contains(Restated(), typ) || saysAsMuch(was[at], c)) && !change.Equal(c, was[at]) {
			is[i], same = was[at], false
		}
	}

	if same {
		return nil
	}

	object, status := maps.Clone(applied.Object), maps.Clone(Map(applied.Object, "status"))
	status["conditions"] = is
	object["status"] = status

	if owners, ok := Value(stored.Object, "metadata", "managedFields"); ok && change.Equal(status, Map(stored.Object, "status")) {
		meta := maps.Clone(Map(applied.Object, "metadata"))
		meta["managedFields"] = owners
		object["metadata"] = meta
	}

	return &unstructured.Unstructured{Object: object}
}

// saysAsMuch reports whether a condition that is stored says the same as one that is applied, of as late a generation or a later one;
// since when does not count.
func saysAsMuch(stored, applied any) bool {
	one, _ := stored.(map[string]any)
	other, _ := applied.(map[string]any)

	if Int(one, "observedGeneration") < Int(other, "observedGeneration") {
		return false
	}

	return !slices.ContainsFunc([]string{"status", "reason", "message"}, func(key string) bool {
		return String(one, key) != String(other, key)
	})
}

func typeOf(condition any) string {
	m, _ := condition.(map[string]any)

	return String(m, "type")
}
