// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Governed reports whether a managed resource is ours to gate: its Composition
// runs the function, or we gated it before. Nobody knows whether we did where an annotation
// under [v1alpha1.AnnotationPrefix] is not of this version: then it is.
func Governed(u *unstructured.Unstructured) bool {
	if !resource.IsManaged(u) {
		return false
	}

	return HasDesired(u) || resource.Annotation(u, v1alpha1.AnnotationGate) != "" || hasUnknown(u)
}

// hasUnknown reports whether an object has [managed.UnknownAnnotations].
func hasUnknown(u *unstructured.Unstructured) bool {
	for key := range resource.Map(u.Object, "metadata", "annotations") {
		if IsUnknown(key) {
			return true
		}
	}

	return false
}

// IsUnknown reports whether an annotation is of a former or a later version of Kausality.
func IsUnknown(key string) bool {
	return strings.HasPrefix(key, v1alpha1.AnnotationPrefix) && !v1alpha1.KnownAnnotation(key)
}
