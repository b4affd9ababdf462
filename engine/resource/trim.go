// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Trim takes away from an object what no decision about its children, its gate
// or its own upkeep reads, and what makes up most of its size: whose fields are
// whose, the manifest as it was last applied, what others annotate, templates,
// data, and of custom resources what is neither a condition nor a reference of
// Crossplane's. The object is modified.
func Trim(u *unstructured.Unstructured) {
	meta := Map(u.Object, "metadata")
	delete(meta, "managedFields")

	annotations := Map(meta, "annotations")
	delete(annotations, corev1.LastAppliedConfigAnnotation)

	if IsManaged(u) || IsClaim(u) {
		return // A gate compares what is asked for with what is; an XR is compared with its Claim.
	}

	gvk := u.GroupVersionKind()
	if gvk.Group == "" && gvk.Kind == "Namespace" {
		return // Expressions see all of it.
	}

	delete(meta, "labels")
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return !strings.HasPrefix(key, v1alpha1.AnnotationPrefix) })

	delete(Map(u.Object, "spec"), "template")

	for _, key := range []string{"data", "binaryData", "stringData"} {
		delete(u.Object, key)
	}

	if builtIn(gvk.Group) {
		return // How far these have come is told by more than conditions.
	}

	if gvk.GroupKind() == RevisionKind() {
		trimRevision(Map(u.Object, "spec"))
	} else {
		keep(Map(u.Object, "spec"), "claimRef", "compositionRevisionRef", "resourceRef", "resourceRefs", "crossplane",
			"forProvider", "managementPolicies")
	}

	keep(Map(u.Object, "status"), "conditions", "observedGeneration")
}

// builtIn says whether a group is of Kubernetes' own.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// keep takes away all but some keys.
func keep(m map[string]any, keys ...string) {
	maps.DeleteFunc(m, func(key string, _ any) bool { return !slices.Contains(keys, key) })
}
