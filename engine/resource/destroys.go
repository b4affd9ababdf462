// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Destroys reports whether a change of an object, by its field, destroys what cannot be made
// anew: the deletion of a managed resource, of what may have some below it, such as an XR, of
// storage, of a namespace, and of a Secret.
func Destroys(u *unstructured.Unstructured, field string) bool {
	if field != v1alpha1.MutationDelete {
		return false
	}

	if IsManaged(u) || IsComposite(u) || IsClaim(u) {
		return true
	}

	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"},
		schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Kind: "Secret"}:
		return true
	default:
		return false
	}
}
