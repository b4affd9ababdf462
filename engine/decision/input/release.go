// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// MayRelease reports whether the writer may ask to leave the external object
// behind: a person, of a managed resource that nobody composes any more, or that is being deleted or to be, itself or with its parent.
// What somebody composes again, or copies, is not released.
func MayRelease(o request.Objects, by request.Writer) bool {
	left := o.Parent == nil || resource.Deleting(o.Parent) || o.IsLeaving()

	return o.Operation == request.OperationUpdate && !by.User.Machine() && by.User.Name != "" && left && resource.IsManaged(o.Old)
}

// mayDrop reports whether an annotation of ours that the writer leaves out is to
// go: a person takes a release back, or a record that is not understood, and a function
// that is taken out of a pipeline records no wishes any more.
func mayDrop(o request.Objects, by request.Writer, key string) bool {
	switch {
	case key == v1alpha1.AnnotationWish && by.Applies():
		return true
	case by.User.Machine() || by.User.Name == "":
		return false
	default:
		return key == v1alpha1.AnnotationRelease || !request.Understood(o.Old, key)
	}
}

// LeavingField is what a trace says was changed: the whole of a list, for the
// parts of a reference would fill it.
func LeavingField(c change.Change) string {
	for _, list := range []string{"metadata.ownerReferences", "spec.resourceRefs", "spec.crossplane.resourceRefs"} {
		if request.Under(c, strings.Split(list, ".")...) {
			return list
		}
	}

	return c.Field
}
