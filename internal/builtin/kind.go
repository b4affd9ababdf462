// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

// Kinds are those of Kubernetes that could be governed, each in its preferred version,
// ordered. Versions that are not stable are off where nobody asked for them, and left out.
func Kinds() []kind.Served {
	newest := map[schema.GroupKind]schema.GroupVersionKind{}

	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if !stable(gvk.Version) || !stored(gvk, t) {
			continue
		}

		if have, ok := newest[gvk.GroupKind()]; !ok || version.CompareKubeAwareVersionStrings(gvk.Version, have.Version) > 0 {
			newest[gvk.GroupKind()] = gvk
		}
	}

	out := make([]kind.Served, 0, len(newest))

	for _, gvk := range newest {
		resource := resourceOf(gvk)
		if !enforcement.Beyond(schema.GroupResource{Group: gvk.Group, Resource: resource}) {
			out = append(out, kind.Served{GVK: gvk, Resource: resource, Owns: true})
		}
	}

	slices.SortFunc(out, func(a, b kind.Served) int { return strings.Compare(a.GVK.String(), b.GVK.String()) })

	return out
}

// Schema is that of a kind, as far as its Go type says; nil where it is none of
// Kubernetes'.
func Schema(gvk schema.GroupVersionKind) *spec.Schema {
	t, ok := scheme.Scheme.AllKnownTypes()[gvk]
	if !ok || !stored(gvk, t) {
		return nil
	}

	out := schemaOf(t, nil)

	return &out
}

// stable reports whether a version is neither alpha nor beta.
func stable(name string) bool {
	return strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == ""
}

// unstored are kinds with metadata of which the API server stores no objects: what it is
// asked, and subresources.
func unstored() []string {
	return []string{
		"Binding", "ComponentStatus", "DeploymentRollback", "Eviction", "ImageReview", "LocalSubjectAccessReview", "PodStatusResult",
		"RangeAllocation", "Scale", "SelfSubjectAccessReview", "SelfSubjectReview", "SelfSubjectRulesReview", "SubjectAccessReview",
		"TokenRequest", "TokenReview",
	}
}

// stored reports whether objects of a kind are.
func stored(gvk schema.GroupVersionKind, t reflect.Type) bool {
	has, ok := t.FieldByName("ObjectMeta")

	return ok && has.Type == reflect.TypeFor[metav1.ObjectMeta]() && !slices.Contains(unstored(), gvk.Kind)
}

// resourceOf is the resource of a kind: the one that its name suggests, but for the one
// whose name is a plural.
func resourceOf(gvk schema.GroupVersionKind) string {
	if gvk.Kind == "Endpoints" {
		return "endpoints"
	}

	plural, _ := meta.UnsafeGuessKindToResource(gvk)

	return plural.Resource
}
