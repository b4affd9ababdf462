// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference names an object's parent, or a composed resource of an XR.
type Reference struct {
	// APIVersion of the parent.
	APIVersion string
	// Kind of the parent.
	Kind string
	// Namespace of the parent; empty for cluster-scoped parents and where
	// only the kind's scope can show.
	Namespace string
	// Name of the parent.
	Name string
	// UID of the parent; empty for Claims, whose reference has none.
	UID string
	// XR is the XR that refers to a Claim, which has to refer to that, too, as KIND.GROUP/NAME; empty for other parents.
	XR string
}

// GroupKind of the parent.
func (r Reference) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

// Is reports whether an object is the one referred to: of the same UID, where both
// have one, or else of the same kind and name. A Claim is only where it refers to the XR: another one of its name does not.
func (r Reference) Is(u *unstructured.Unstructured) bool {
	if uid := String(u.Object, "metadata", "uid"); r.UID != "" && uid != "" {
		return r.UID == uid
	}

	return r.GroupKind() == u.GroupVersionKind().GroupKind() && r.Name == u.GetName() &&
		(r.XR == "" || r.XR == compositeOf(u))
}

// compositeOf is the XR that a Claim refers to, as a [Reference] has it.
func compositeOf(claim *unstructured.Unstructured) string {
	ref := Map(claim.Object, "spec", "resourceRef")

	return schema.FromAPIVersionAndKind(String(ref, "apiVersion"), String(ref, "kind")).GroupKind().String() + "/" + String(ref, "name")
}

// ParentIn returns the reference to the parent in a change of an object. It is
// the old object's, or else one write would free the object from its parent; that
// of one that had none is the parent which takes it over.
func ParentIn(old, obj *unstructured.Unstructured) (Reference, bool) {
	if old != nil {
		if ref, ok := ParentOf(old); ok {
			return ref, true
		}
	}

	if obj != nil {
		return ParentOf(obj)
	}

	return Reference{}, false
}

// ParentOf returns the reference to an object's parent: the controller owner
// reference, or for an XR the Claim it is bound to. False for a root.
func ParentOf(u *unstructured.Unstructured) (Reference, bool) {
	for _, e := range List(u.Object, "metadata", "ownerReferences") {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}

		if c, _ := m["controller"].(bool); c {
			return Reference{
				APIVersion: String(m, "apiVersion"),
				Kind:       String(m, "kind"),
				Namespace:  u.GetNamespace(),
				Name:       String(m, "name"),
				UID:        String(m, "uid"),
			}, true
		}
	}

	return ClaimOf(u)
}

// GroupVersionKind of the object referred to.
func (r Reference) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// Composed returns what an XR refers to as composed of. In a namespaced XR a
// reference without a namespace is to its own.
func Composed(xr *unstructured.Unstructured) []Reference {
	list := List(xr.Object, "spec", "crossplane", "resourceRefs")
	if list == nil {
		list = List(xr.Object, "spec", "resourceRefs")
	}

	out := make([]Reference, 0, len(list))

	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok || String(m, "name") == "" {
			continue
		}

		ref := Reference{APIVersion: String(m, "apiVersion"), Kind: String(m, "kind"), Namespace: String(m, "namespace"), Name: String(m, "name")}
		if ref.Namespace == "" {
			ref.Namespace = xr.GetNamespace()
		}

		out = append(out, ref)
	}

	return out
}

// IsManaged reports whether the object is a managed resource: of a kind with
// spec.forProvider and spec.managementPolicies. An object that leaves the
// policies to their default is one too.
func IsManaged(u *unstructured.Unstructured) bool {
	return Map(u.Object, "spec", "forProvider") != nil
}

// IsClaim reports whether the object is a Claim: it is namespaced, and refers to one
// XR, which is of the group of the same definition. A namespaced XR, and any other
// kind, may have a spec.resourceRef of its own.
func IsClaim(u *unstructured.Unstructured) bool {
	ref := Map(u.Object, "spec", "resourceRef")
	group := schema.FromAPIVersionAndKind(String(ref, "apiVersion"), "").Group

	return u.GetNamespace() != "" && String(ref, "kind") != "" && group == u.GroupVersionKind().Group && !BuiltIn(group) &&
		Map(u.Object, "spec", "claimRef") == nil && Map(u.Object, "spec", "crossplane") == nil
}

// IsComposite reports whether the object is an XR: bound to a Claim, referring to
// composed resources, or with Crossplane's own section in its spec.
func IsComposite(u *unstructured.Unstructured) bool {
	return BoundToClaim(u) || List(u.Object, "spec", "resourceRefs") != nil || Map(u.Object, "spec", "crossplane") != nil
}

// BoundToClaim reports whether the object is an XR that a Claim stands for.
func BoundToClaim(u *unstructured.Unstructured) bool {
	_, ok := ClaimOf(u)

	return ok
}

// finalizerComposing is Crossplane's own on an XR.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0,
// internal/controller/apiextensions/composite/reconciler.go.
const finalizerComposing = "composite.apiextensions.crossplane.io"

// AnnotationComposed is on what an XR composes: its name in the Composition.
const AnnotationComposed = "crossplane.io/composition-resource-name"

// ComposedName is the name of a composed resource in its Composition; empty where it has none.
func ComposedName(u *unstructured.Unstructured) string { return Annotation(u, AnnotationComposed) }

// Composing reports whether Crossplane may be composing for an XR, from what it saw
// a while ago. Once the XR is being deleted, that is until Crossplane has taken
// its finalizer away: it works at an XR once at a time, so whatever it was at
// has ended then.
func Composing(u *unstructured.Unstructured) bool {
	return slices.Contains(u.GetFinalizers(), finalizerComposing)
}

// Refers reports whether an XR refers to an object as one that it is composed of.
func Refers(xr, u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(Composed(xr), func(r Reference) bool {
		return r.GroupKind() == u.GroupVersionKind().GroupKind() && r.Name == u.GetName() && r.Namespace == u.GetNamespace()
	})
}

// BuiltIn reports whether a group is of Kubernetes' own.
func BuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}
