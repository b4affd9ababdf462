// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"maps"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// annotationPaused has a provider, or Crossplane, leave an object alone.
//
// Source: github.com/crossplane/crossplane-runtime/v2, pkg/meta/meta.go.
const annotationPaused = "crossplane.io/paused"

// AnnotationCreated is when a provider made the external object. A provider stores
// it before it says anything else of what it made.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, pkg/meta/meta.go,
// AnnotationKeyExternalCreateSucceeded.
const AnnotationCreated = "crossplane.io/external-create-succeeded"

// Trim takes away from an object what no decision about its children or its own
// upkeep reads, and what makes up most of its size: whose fields are whose, the
// manifest as it was last applied, what others annotate, templates, data, and of
// custom resources what is neither a condition nor a reference of Crossplane's.
// Of a managed resource it leaves what shows a gate that is closed, and labels; what an
// open one compares is for package gate to leave. The object is modified.
func Trim(u *unstructured.Unstructured) {
	TrimBookkeeping(u)

	if IsClaim(u) && !IsManaged(u) {
		return // An XR is compared with its Claim.
	}

	gvk := u.GroupVersionKind()
	if gvk.Group == "" && gvk.Kind == "Namespace" {
		return // Expressions see all of it.
	}

	meta := Map(u.Object, "metadata")
	if !IsManaged(u) { // Windows select managed resources.
		delete(meta, "labels")
	}

	maps.DeleteFunc(Map(meta, "annotations"), func(key string, _ any) bool {
		return !strings.HasPrefix(key, v1alpha1.AnnotationPrefix) && key != annotationPaused && key != AnnotationCreated
	})

	delete(Map(u.Object, "spec"), "template")

	for _, key := range []string{"data", "binaryData", "stringData"} {
		delete(u.Object, key)
	}

	if !BuiltIn(gvk.Group) { // How far the others have come is shown by more than conditions.
		trimCustom(u)
	}

	u.Object = compactMap(u.Object)
}

// TrimBookkeeping takes away from an object whose fields are whose, and the
// manifest as it was last applied. The object is modified.
func TrimBookkeeping(u *unstructured.Unstructured) {
	meta := Map(u.Object, "metadata")
	delete(meta, "managedFields")
	delete(Map(meta, "annotations"), corev1.LastAppliedConfigAnnotation)
}

// trimCustom leaves of a custom resource who it is, its conditions, Crossplane's
// references, and what makes it a managed resource.
func trimCustom(u *unstructured.Unstructured) {
	keep(Map(u.Object, "metadata"), "name", "namespace", "uid", "resourceVersion", "generation", "annotations", "labels",
		"ownerReferences", "finalizers", "creationTimestamp", "deletionTimestamp")

	spec := Map(u.Object, "spec")

	if u.GroupVersionKind().GroupKind() == RevisionKind() {
		trimRevision(spec)
	} else {
		keep(spec, "claimRef", "compositionRevisionRef", "resourceRef", "resourceRefs", "crossplane",
			"forProvider", "managementPolicies", "deletionPolicy")
	}

	if IsManaged(u) {
		spec["forProvider"] = map[string]any{}
	}

	keep(Map(u.Object, "status"), "conditions", "observedGeneration")
}

// keep takes away all but some keys.
func keep(m map[string]any, keys ...string) {
	maps.DeleteFunc(m, func(key string, _ any) bool { return !slices.Contains(keys, key) })
}

// compactMap copies a map: one keeps the room of what was taken away, and every
// string of a decoded object is a copy of its own.
func compactMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		out[unique.Make(key).Value()] = compact(key, v)
	}

	return out
}

// compact copies a value. Texts that many objects have in common they share.
func compact(key string, v any) any {
	switch t := v.(type) {
	case map[string]any:
		return compactMap(t)
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = compact("", e)
		}

		return out
	case string:
		if common(key) {
			return unique.Make(v).Value()
		}

		return t
	default:
		return v
	}
}

// common reports whether the texts below a key, or in a list, tend to be the same
// in many objects.
func common(key string) bool {
	switch key {
	case "", "apiVersion", "kind", "namespace", "deletionPolicy", "type", "status", "reason",
		v1alpha1.AnnotationDesiredPolicies, v1alpha1.AnnotationAllowances, v1alpha1.AnnotationInitialized:
		return true
	default:
		return false
	}
}
