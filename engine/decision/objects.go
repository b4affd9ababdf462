// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// objects are those of a request. The operation agrees with them, and the parent with the reference to it.
type objects struct {
	// Operation that is asked for.
	Operation Operation
	// Old is the object as it is, nil on create, and New what may be stored of what is asked for, nil on delete.
	Old, New *unstructured.Unstructured
	// Asked is the new object with the annotations that its writer asks for.
	Asked *unstructured.Unstructured
	// Parent is nil for a root, and where there is nothing; ParentGone is true in the second case.
	Parent     *unstructured.Unstructured
	ParentGone bool
	// WithNamespace is true where the parent is the namespace, which takes along what is in it.
	WithNamespace bool
	// OtherXR is true of an XR whose Claim is bound to another one, or to none yet.
	OtherXR bool
	// Root is true of an object without parent.
	Root bool
	// Resource of the object, and the versions in which it is served; nil where they are not known.
	Resource schema.GroupResource
	Versions []string
	// ComposedResource is the name of a new object in its Composition; empty for none.
	ComposedResource string
}

// objectsOf are those of a request. The error is about a request that makes no sense.
func objectsOf(req *Request) (objects, error) {
	out := objects{
		Operation: req.Operation, Old: present(req.Old), New: present(req.New), Parent: req.Parent, ParentGone: req.ParentGone,
		Resource: req.Resource, Versions: req.Versions, ComposedResource: req.ComposedResource,
	}

	switch {
	case out.Old == nil && out.New == nil:
		return objects{}, errNoObject
	case out.Old == nil || out.Operation == OperationCreate && out.New != nil:
		out.Operation, out.Old = OperationCreate, nil
	case out.New == nil || out.Operation == OperationDelete:
		out.Operation, out.New = OperationDelete, nil
	default:
		out.Operation = OperationUpdate
	}

	out.Asked = out.New
	out = out.withParent(req.Namespace)
	// A namespace that is deleted is a parent only for who carries that out: for anybody else nothing is different.
	out.Root = (out.Parent == nil || out.WithNamespace && !deletesForOthers(req.User)) && !out.ParentGone

	return out, nil
}

// present is an object; nil for one without content.
func present(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil || u.Object == nil {
		return nil
	}

	return u
}

// withParent makes the parent agree with the reference to it. A namespace that is being deleted takes along what is in
// it: there it stands in for the parent that a root does not have.
func (o objects) withParent(namespace *unstructured.Unstructured) objects {
	ref, ok := resource.ParentIn(o.Old, o.New)

	switch {
	case ok && (o.Parent == nil || !ref.Is(o.Parent)):
		o.OtherXR = o.Parent != nil && ref.XR != ""
		o.Parent, o.ParentGone = nil, true
	case ok || o.Parent != nil || o.ParentGone:
	case o.Operation == OperationDelete && namespace != nil && resource.Deleting(namespace):
		o.Parent, o.WithNamespace = namespace, true
	}

	return o
}

// target is the object that the request is about: the new one, or the old one on delete.
func (o objects) target() *unstructured.Unstructured {
	if o.New != nil {
		return o.New
	}

	return o.Old
}

func (o objects) groupKind() schema.GroupKind { return o.target().GroupVersionKind().GroupKind() }

// title is the object, for a person.
func (o objects) title() string {
	return fmt.Sprintf("%s %q", o.groupKind().Kind, resource.Name(o.target()))
}

// between are the objects that the changes of the request are between.
func (o objects) between() []map[string]any {
	var out []map[string]any

	for _, u := range []*unstructured.Unstructured{o.Old, o.Asked, o.New} {
		if u != nil {
			out = append(out, u.Object)
		}
	}

	return out
}

// home is the namespace that an object belongs to, in which permissions are asked and bindings found; empty for none. A
// cluster-scoped XR belongs to that of its Claim, where the Claim says so, too, and has before: one write must not take
// an XR to a namespace and change it.
func (o objects) home() string {
	u := o.target()
	if namespace := resource.String(u.Object, "metadata", "namespace"); namespace != "" || o.Parent == nil || !resource.IsClaim(o.Parent) {
		return namespace
	}

	if o.Old != nil && !resource.BoundToClaim(o.Old) {
		return ""
	}

	return o.Parent.GetNamespace()
}

// composedName is the name of a new object in its Composition, or its own.
func (o objects) composedName() string {
	if o.ComposedResource != "" {
		return o.ComposedResource
	}

	return resource.Name(o.New)
}
