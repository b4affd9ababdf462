// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Upkeep returns the annotations of a parent that its own progress changes: it
// was ready for the first time, or allowances have served. Nil when there are
// none. A managed resource's External allowances are its gate's business.
func Upkeep(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{}

	if resource.SeenReady(u) && resource.Annotation(u, v1alpha1.AnnotationInitialized) != "true" && !bumpsGeneration(u) {
		out[v1alpha1.AnnotationInitialized] = "true"
	}

	list, err := allowance.Parse(u)
	if err == nil && len(list) > 0 && !bumpsGeneration(u) {
		if left := allowance.Unconsumed(u, list); len(left) < len(list) {
			out[v1alpha1.AnnotationAllowances] = allowance.FormatList(left)
		}
	}

	if len(out) == 0 {
		return nil
	}

	return out
}

// bumpsGeneration says whether the API server counts a change of annotations
// as a new generation. Such kinds are only annotated in somebody else's write.
//
// Source: k8s.io/kubernetes pkg/registry/apps/deployment/strategy.go,
// PrepareForUpdate.
func bumpsGeneration(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apps", Kind: "Deployment"}
}
