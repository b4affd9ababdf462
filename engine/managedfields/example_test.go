// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
)

func Example() {
	live := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"managedFields": []any{map[string]any{
			"manager": "apiextensions.crossplane.io/composed/0123", "operation": "Apply",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:size": map[string]any{}, "f:engine": map[string]any{}}},
		}}},
		"spec": map[string]any{"size": "small", "engine": "postgres", "zone": "defaulted"},
	}}

	owned, err := managedfields.Of(live, managedfields.ComposedManager+"0123")
	if err != nil {
		fmt.Println(err)

		return
	}

	// What is no longer desired goes, if Crossplane owns it; what others set stays.
	desired := map[string]any{"spec": map[string]any{"size": "large"}}
	fmt.Println(managedfields.Merge(live.Object, desired, owned)["spec"])

	// Output:
	// map[size:large zone:defaulted]
}
