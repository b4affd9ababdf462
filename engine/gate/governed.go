// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// AnnotationExternalName says which external object a managed resource stands
// for.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, pkg/meta/meta.go.
const AnnotationExternalName = "crossplane.io/external-name"

// Governed reports whether a managed resource is ours to gate: its Composition
// runs the function, or we gated it before.
func Governed(u *unstructured.Unstructured) bool {
	return resource.IsManaged(u) && (resource.Annotation(u, v1alpha1.AnnotationManagementPolicies) != "" ||
		resource.Annotation(u, v1alpha1.AnnotationGate) != "")
}
