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
func (j *judge) byRelease(c change.Change) (Finding, bool) {
	if j.Operation != OperationUpdate || j.User.Machine() {
		return Finding{}, false
	}

	switch {
	case under(c, "metadata", "ownerReferences"):
		if !j.ParentGone && (j.Parent == nil || !resource.Deleting(j.Parent)) {
			return Finding{}, false
		}
	case under(c, "metadata", "annotations") && j.mayRelease():
		if len(c.Path) < 3 || c.Path[2].Field != v1alpha1.AnnotationRelease {
			return Finding{}, false
		}
	case !j.composesMore(c):
		return Finding{}, false
	}

	return Finding{cause: cause{initiator: j.User.Name}}, true
}

// mayRelease reports whether the writer may ask to leave the external object
// behind: a person, of a managed resource that nobody composes any more, or that is being deleted or to be, itself or with its parent.
// What somebody composes again, or copies, is not released.
func (l *lineage) mayRelease() bool {
	left := l.Parent == nil || resource.Deleting(l.Parent) || l.leaves()

	return l.Operation == OperationUpdate && !l.User.Machine() && l.User.Name != "" && left && resource.IsManaged(l.Old)
}

// leaves reports whether the object is being deleted, or is to be and it is allowed.
func (l *lineage) leaves() bool {
	if l.Old == nil {
		return false
	}

	list, err := allowance.Parse(l.Old)

	return resource.Deleting(l.Old) || err == nil && allowance.GrantsDeletion(list)
}

// mayDrop reports whether an annotation of ours that the writer leaves out is to
// go: a person takes a release back, or a record that is not understood, and a function
// that is taken out of a pipeline records no wishes any more.
func (l *lineage) mayDrop(key string) bool {
	switch {
	case key == v1alpha1.AnnotationWish && l.applies():
		return true
	case l.User.Machine() || l.User.Name == "":
		return false
	default:
		return key == v1alpha1.AnnotationRelease || !understood(l.Old, key)
	}
}

// composesMore reports whether an XR is to refer to one more resource that it is
// made of. Crossplane takes none that belongs to another. One that is paused from
// the start shows only now that it is an XR.
func (l *lineage) composesMore(c change.Change) bool {
	return c.Addition() && (resource.IsComposite(l.Old) || resource.IsComposite(l.New)) &&
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
