// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Object is one that was read: the root, or one below it.
type Object struct {
	*unstructured.Unstructured

	// Parent of the object; nil for the root.
	Parent *v1alpha1.ObjectReference
}

// Key names an object in whatever version of its kind.
type Key struct {
	schema.GroupKind

	Namespace, Name string
}

// KeyOf is what a reference names.
func KeyOf(ref v1alpha1.ObjectReference) Key {
	return Key{GroupKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), Namespace: ref.Namespace, Name: ref.Name}
}

// KeyOfObject names an object, as [KeyOf] a reference to it.
func KeyOfObject(u *unstructured.Unstructured) Key {
	return Key{GroupKind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// RefTo refers to an object.
func RefTo(u *unstructured.Unstructured) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
	}
}

// Listed returns the list of an XR. False where it is not known: its pipeline failed, or did not
// run yet. Of one whose Composition does not run the function any more it is empty, whatever the
// condition says.
func Listed(xr *unstructured.Unstructured) (*v1alpha1.State, bool) {
	if c, ok := resource.ConditionOf(xr, v1alpha1.ConditionKausality); ok && c.Reason == v1alpha1.ReasonNotRun {
		return &v1alpha1.State{}, true
	}

	return resource.StateOf(xr)
}
