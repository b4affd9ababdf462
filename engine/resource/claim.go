// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClaimOf returns the reference of an XR to the Claim it is bound to. Other
// kinds have a spec.claimRef too, among them PersistentVolume, ObjectBucket and
// IPAddress. An XR's is distinguished from theirs by what Crossplane makes of it: the XR
// is cluster-scoped, the Claim is not, both are of the group of one definition,
// and the reference has a name in full and no UID.
//
// Source: github.com/crossplane/crossplane-runtime/v2
// pkg/resource/unstructured/reference, Claim.
func ClaimOf(u *unstructured.Unstructured) (Reference, bool) {
	ref := Map(u.Object, "spec", "claimRef")
	if ref == nil || u.GetNamespace() != "" || String(ref, "uid") != "" {
		return Reference{}, false
	}

	out := Reference{
		APIVersion: String(ref, "apiVersion"),
		Kind:       String(ref, "kind"),
		Namespace:  String(ref, "namespace"),
		Name:       String(ref, "name"),
		XR:         u.GroupVersionKind().GroupKind().String() + "/" + u.GetName(),
	}

	if out.Kind == "" || out.Namespace == "" || out.Name == "" {
		return Reference{}, false
	}

	group := schema.FromAPIVersionAndKind(out.APIVersion, "").Group

	return out, !BuiltIn(group) && group == u.GroupVersionKind().Group
}
