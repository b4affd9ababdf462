// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func Example() {
	xr := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1alpha1", "kind": "XDatabase",
		"metadata": map[string]any{"name": "my-database-xyz", "generation": int64(12)},
		"spec": map[string]any{"claimRef": map[string]any{
			"apiVersion": "example.org/v1alpha1", "kind": "DatabaseClaim", "name": "my-database", "namespace": "default",
		}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Synced", "status": "False", "observedGeneration": int64(12)},
			map[string]any{"type": "Ready", "status": "True", "observedGeneration": int64(11)},
		}},
	}}

	parent, _ := resource.ParentOf(xr)
	fmt.Println("parent:", parent.GroupKind(), parent.Name)
	fmt.Println("seen ready:", resource.SeenReady(xr, time.Now()))
	fmt.Println("observed:", resource.ObservedGeneration(xr), "of", resource.Generation(xr)) // A failed attempt does not count.
	fmt.Println("converged:", resource.Converged(xr))

	// Output:
	// parent: DatabaseClaim.example.org my-database
	// seen ready: true
	// observed: 11 of 12
	// converged: false
}
