// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byLeaving lets a person decide what becomes of what a parent left behind: it
// may lose the reference to a parent that is gone, or get another one instead,
// be released, and become a part of an XR. None of that reaches the external
// object: the gate stays as it is.
func (d *decider) byLeaving(c change.Change) (Finding, bool) {
	if d.Operation != OperationUpdate || d.User.Machine() {
		return Finding{}, false
	}

	switch {
	case under(c, "metadata", "ownerReferences"):
		if !d.ParentGone {
			return Finding{}, false
		}
	case under(c, "metadata", "annotations") && d.mayRelease():
		if len(c.Path) < 3 || c.Path[2].Field != v1alpha1.AnnotationRelease {
			return Finding{}, false
		}
	case !d.composesMore(c):
		return Finding{}, false
	}

	return Finding{Rule: RuleLeftBehind, cause: cause{initiator: d.User.Name}}, true
}

// mayRelease says whether the writer may ask to leave the external object
// behind: a person, of a managed resource that nobody composes any more. What
// somebody composes again, or copies, is not released.
func (d *decider) mayRelease() bool {
	return d.Operation == OperationUpdate && !d.User.Machine() && d.User.Name != "" && d.Parent == nil && resource.IsManaged(d.Old)
}

// mayDrop says whether an annotation of ours that the writer leaves out is to
// go: a person takes a release back, and a function that is taken out of a
// pipeline records no wishes any more.
func (d *decider) mayDrop(key string) bool {
	if key == v1alpha1.AnnotationWish {
		return d.applies()
	}

	return key == v1alpha1.AnnotationRelease && !d.User.Machine()
}

// composesMore says whether an XR is to refer to one more resource that it is
// made of. Crossplane takes none that belongs to another. One that is paused from
// the start shows only now that it is an XR.
func (d *decider) composesMore(c change.Change) bool {
	return c.Addition() && (resource.IsComposite(d.Old) || resource.IsComposite(d.New)) &&
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
