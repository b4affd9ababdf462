// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Destroys reports whether a change of an object destroys something: the deletion of a managed
// resource, of a Claim or an XR, or of what holds data or all that is in it. The object is nil
// where it is not known.
func Destroys(gk schema.GroupKind, u *unstructured.Unstructured, field string) bool {
	if field != v1alpha1.MutationDelete {
		return false
	}

	if gk.Group == "" {
		switch gk.Kind {
		case "PersistentVolumeClaim", "PersistentVolume", "Namespace", "Secret":
			return true
		}
	}

	return u != nil && (resource.IsManaged(u) || resource.IsClaim(u) || resource.IsComposite(u))
}
