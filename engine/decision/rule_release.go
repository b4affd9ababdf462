// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byRelease lets a person decide what becomes of what a parent orphaned: it
// may lose the reference to a parent that is gone, or get another one instead,
// be released, and become a part of an XR. None of that reaches the external
// object: the gate stays as it is.
func byRelease(o objects, by writer, c change.Change) (Finding, bool) {
	if o.Operation != OperationUpdate || by.User.Machine() {
		return Finding{}, false
	}

	switch {
	case under(c, "metadata", "ownerReferences"):
		if !o.ParentGone && (o.Parent == nil || !resource.Deleting(o.Parent)) {
			return Finding{}, false
		}
	case under(c, "metadata", "annotations") && mayRelease(o, by):
		if len(c.Path) < 3 || c.Path[2].Field != v1alpha1.AnnotationRelease {
			return Finding{}, false
		}
	case !o.composesMore(c):
		return Finding{}, false
	}

	return Finding{cause: cause{initiator: by.User.Name}}, true
}

// mayRelease reports whether the writer may ask to leave the external object
// behind: a person, of a managed resource that nobody composes any more, or that is being deleted or to be, itself or with its parent.
// What somebody composes again, or copies, is not released.
func mayRelease(o objects, by writer) bool {
	left := o.Parent == nil || resource.Deleting(o.Parent) || o.isLeaving()

	return o.Operation == OperationUpdate && !by.User.Machine() && by.User.Name != "" && left && resource.IsManaged(o.Old)
}

// isLeaving reports whether the object is being deleted, or is to be and it is allowed.
func (o objects) isLeaving() bool {
	if o.Old == nil {
		return false
	}

	list, err := allowance.Parse(o.Old)

	return resource.Deleting(o.Old) || err == nil && allowance.GrantsDeletion(list)
}

// mayDrop reports whether an annotation of ours that the writer leaves out is to
// go: a person takes a release back, or a record that is not understood, and a function
// that is taken out of a pipeline records no wishes any more.
func mayDrop(o objects, by writer, key string) bool {
	switch {
	case key == v1alpha1.AnnotationWish && by.applies():
		return true
	case by.User.Machine() || by.User.Name == "":
		return false
	default:
		return key == v1alpha1.AnnotationRelease || !understood(o.Old, key)
	}
}

// composesMore reports whether an XR is to refer to one more resource that it is
// made of. Crossplane takes none that belongs to another. One that is paused from
// the start shows only now that it is an XR.
func (o objects) composesMore(c change.Change) bool {
	return c.Addition() && (resource.IsComposite(o.Old) || resource.IsComposite(o.New)) &&
		(under(c, "spec", "resourceRefs") || under(c, "spec", "crossplane", "resourceRefs"))
}

// leavingField is what a trace says was changed: the whole of a list, for the
// parts of a reference would fill it.
func leavingField(c change.Change) string {
	for _, list := range []string{"metadata.ownerReferences", "spec.resourceRefs", "spec.crossplane.resourceRefs"} {
		if under(c, strings.Split(list, ".")...) {
			return list
		}
	}

	return c.Field
}
