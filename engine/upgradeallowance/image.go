// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// runs reports whether any container of a pod has an image. References are
// compared as they are written; a tag shows what was asked for, not what it was
// when it was pulled. One with a digest is also found where only the node knows
// it.
func runs(pod *unstructured.Unstructured, image string) bool {
	for _, key := range specContainers() {
		if slices.Contains(each(pod, "image", "spec", key), image) {
			return true
		}
	}

	if !strings.Contains(image, "@") {
		return false
	}

	for _, key := range statusContainers() {
		for _, id := range each(pod, "imageID", "status", key) {
			if _, ref, ok := strings.Cut(id, "://"); ok {
				id = ref // Of old nodes: docker-pullable://REFERENCE.
			}

			if id == image {
				return true
			}
		}
	}

	return false
}

func specContainers() []string { return []string{"containers", "initContainers"} }

func statusContainers() []string { return []string{"containerStatuses", "initContainerStatuses"} }

// each reads one field of every element of a list.
func each(u *unstructured.Unstructured, field string, list ...string) []string {
	elements := resource.List(u.Object, list...)
	out := make([]string, 0, len(elements))

	for _, e := range elements {
		if m, ok := e.(map[string]any); ok {
			out = append(out, resource.String(m, field))
		}
	}

	return out
}
