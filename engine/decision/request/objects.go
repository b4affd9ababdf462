// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Objects are those of a request. The operation agrees with them, and the parent with the reference to it.
type Objects struct {
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

// ObjectsOf are those of a request. The error is about a request that makes no sense.
func ObjectsOf(req *Request) (Objects, error) {
	out := Objects{
		Operation: req.Operation, Old: present(req.Old), New: present(req.New), Parent: req.Parent, ParentGone: req.ParentGone,
		Resource: req.Resource, Versions: req.Versions, ComposedResource: req.ComposedResource,
	}

	switch {
	case out.Old == nil && out.New == nil:
		return Objects{}, errNoObject
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
	out.Root = (out.Parent == nil || out.WithNamespace && !DeletesForOthers(req.User)) && !out.ParentGone

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
func (o Objects) withParent(namespace *unstructured.Unstructured) Objects {
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

// Target is the object that the request is about: the new one, or the old one on delete.
func (o Objects) Target() *unstructured.Unstructured {
	if o.New != nil {
		return o.New
	}

	return o.Old
}

// GroupKind is that of the object.
func (o Objects) GroupKind() schema.GroupKind { return o.Target().GroupVersionKind().GroupKind() }

// Title is the object, for a person.
func (o Objects) Title() string {
	return fmt.Sprintf("%s %q", o.GroupKind().Kind, resource.Name(o.Target()))
}

// Between are the objects that the changes of the request are between.
func (o Objects) Between() []map[string]any {
	var out []map[string]any

	for _, u := range []*unstructured.Unstructured{o.Old, o.Asked, o.New} {
		if u != nil {
			out = append(out, u.Object)
		}
	}

	return out
}

// Home is the namespace that an object belongs to, in which permissions are asked and bindings found; empty for none. A
// cluster-scoped XR belongs to that of its Claim, where the Claim says so, too, and has before: one write must not take
// an XR to a namespace and change it.
func (o Objects) Home() string {
	u := o.Target()
	if namespace := resource.String(u.Object, "metadata", "namespace"); namespace != "" || o.Parent == nil || !resource.IsClaim(o.Parent) {
		return namespace
	}

	if o.Old != nil && !resource.BoundToClaim(o.Old) {
		return ""
	}

	return o.Parent.GetNamespace()
}

// ComposedName is the name of a new object in its Composition, or its own.
func (o Objects) ComposedName() string {
	if o.ComposedResource != "" {
		return o.ComposedResource
	}

	return resource.Name(o.New)
}

// ParentBuilt reports whether the parent has built up what it is made of. A Claim has where its XR has, which it may not show: it
// is not ready then.
func (o Objects) ParentBuilt(now time.Time) bool {
	return resource.SeenReady(o.Parent, now) ||
		o.Old != nil && resource.IsClaim(o.Parent) && resource.BoundToClaim(o.Old) && resource.SeenReady(o.Old, now)
}

// OrdinaryPart reports whether the object is what an XR composes, and no gate stands
// before.
func (o Objects) OrdinaryPart() bool {
	return o.Parent != nil && resource.IsComposite(o.Parent) && !resource.IsManaged(o.New)
}

// LastOfParent is the ID of the last change of the parent.
func (o Objects) LastOfParent() string {
	generation := max(resource.Generation(o.Parent), 1)

	return allowance.ID(generation, allowance.LastRequest(o.Parent, generation))
}

// IsLeaving reports whether the object is being deleted, or is to be and it is allowed.
func (o Objects) IsLeaving() bool {
	if o.Old == nil {
		return false
	}

	list, err := allowance.Parse(o.Old)

	return resource.Deleting(o.Old) || err == nil && allowance.GrantsDeletion(list)
}

// ComposesMore reports whether an XR is to refer to one more resource that it is
// made of. Crossplane takes none that belongs to another. One that is paused from
// the start shows only now that it is an XR.
func (o Objects) ComposesMore(c change.Change) bool {
	return c.Addition() && (resource.IsComposite(o.Old) || resource.IsComposite(o.New)) &&
		(Under(c, "spec", "resourceRefs") || Under(c, "spec", "crossplane", "resourceRefs"))
}

// Moved is a path of the parent as the object carries it.
func (o Objects) Moved(trace []v1alpha1.Hop) []v1alpha1.Hop {
	return allowance.MoveTrace(trace, resource.String(o.Parent.Object, "metadata", "namespace"),
		resource.String(o.Target().Object, "metadata", "namespace"))
}

// ControllerChanges reports whether the object would get another controller
// reference than the one it has.
func (o Objects) ControllerChanges() bool {
	was, had := resource.ParentOf(o.Old)
	is, has := resource.ParentOf(o.New)

	return had && (!has || !sameParent(was, is))
}

// sameParent compares references by UID where both have one: an owner that
// moves to another version of its API is the same owner.
func sameParent(a, b resource.Reference) bool {
	if a.UID != "" && b.UID != "" {
		return a.UID == b.UID
	}

	return a == b
}

// EnforcementTarget is what rules of Enforcements ask of the request.
func (o Objects) EnforcementTarget() enforcement.Target {
	return enforcement.Target{
		Resource: o.Resource, Versions: o.servedIn(), Operation: v1alpha1.Operation(o.Operation),
		Namespaced: resource.String(o.Target().Object, "metadata", "namespace") != "", Name: o.Target().GetName(),
	}
}

// servedIn are the versions in which the object's resource is served; nil where they are not
// known. Those that it is asked for and stored in are among them, whoever has not heard of
// them yet.
func (o Objects) servedIn() []string {
	if len(o.Versions) == 0 {
		return nil
	}

	out := slices.Clone(o.Versions)

	for _, u := range []*unstructured.Unstructured{o.Old, o.New} {
		if u != nil {
			out = append(out, u.GroupVersionKind().Version)
		}
	}

	return out
}

// Under reports whether a change is at or below a path of map keys.
func Under(c change.Change, keys ...string) bool {
	if len(c.Path) < len(keys) {
		return false
	}

	for i, k := range keys {
		if c.Path[i].Type != fieldpath.SegmentField || c.Path[i].Field != k {
			return false
		}
	}

	return true
}
