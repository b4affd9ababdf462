// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"strings"

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
