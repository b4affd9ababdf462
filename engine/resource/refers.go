// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Refers reports whether an XR refers to an object as one that it is composed of.
func Refers(xr, u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(Composed(xr), func(r Reference) bool {
		return r.GroupKind() == u.GroupVersionKind().GroupKind() && r.Name == u.GetName() && r.Namespace == u.GetNamespace()
	})
}
