// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Versions are those in which a resource is served, sorted; nil where that cannot be
// found out.
func Versions(mapper meta.RESTMapper, gr schema.GroupResource) []string {
	kinds, err := mapper.KindsFor(gr.WithVersion(""))
	if err != nil {
		return nil
	}

	out := make([]string, len(kinds))
	for i, gvk := range kinds {
		out[i] = gvk.Version
	}

	return slices.Compact(slices.Sorted(slices.Values(out)))
}
