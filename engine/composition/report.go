// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Reporting says which part of an XR's status its pipeline is about to change,
// empty for none: what it composes in the next round may follow from that.
// Desired is the XR as the pipeline wants it, a partial object; conditions do
// not count.
func Reporting(xr, desired *unstructured.Unstructured) string {
	want := maps.Clone(resource.Map(desired.Object, "status"))
	delete(want, "conditions")

	field, changes := firstChange(want, resource.Map(xr.Object, "status"), "status")
	if !changes {
		return ""
	}

	return describe(xr) + " is about to report a new " + field
}

// firstChange finds the first field, in order, of a partial value that another
// one does not have.
func firstChange(want, have map[string]any, at string) (field string, changes bool) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		path := at + "." + key

		if below, ok := want[key].(map[string]any); ok {
			if field, changes := firstChange(below, resource.Map(have, key), path); changes {
				return field, true
			}

			continue
		}

		if !change.Equal(want[key], have[key]) {
			return path, true
		}
	}

	return "", false
}
