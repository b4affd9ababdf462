// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Trim returns of a pod or workload what [Evaluate] reads, and its identity.
func Trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	out.SetDeletionTimestamp(u.GetDeletionTimestamp())

	spec, status := map[string]any{}, map[string]any{}

	for _, key := range specContainers() {
		copyField(spec, u, "image", "spec", key)
	}

	for _, key := range statusContainers() {
		copyField(status, u, "imageID", "status", key)
	}

	if phase := resource.String(u.Object, "status", "phase"); phase != "" {
		status["phase"] = phase
	}

	if seen := resource.Int(u.Object, "status", "observedGeneration"); seen != 0 {
		status["observedGeneration"] = seen
	}

	if c, ok := resource.ConditionOf(u, resource.ConditionReady); ok {
		status["conditions"] = []any{map[string]any{"type": c.Type, "status": c.Status}}
	}

	out.Object["spec"], out.Object["status"] = spec, status

	return out
}

// copyField copies a list with one field of each element.
func copyField(into map[string]any, u *unstructured.Unstructured, field, parent, key string) {
	values := each(u, field, parent, key)
	if len(values) == 0 {
		return
	}

	list := make([]any, len(values))
	for i, v := range values {
		list[i] = map[string]any{field: v}
	}

	into[key] = list
}
