// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byRelease lets a person decide what becomes of what a parent orphaned: it
// may lose the reference to a parent that is gone, or get another one instead,
// be released, and become a part of an XR. None of that reaches the external
// object: the gate stays as it is.
func byRelease(o request.Objects, by request.Writer, c change.Change) (finding.Finding, bool) {
	if o.Operation != request.OperationUpdate || by.User.Machine() {
		return finding.Finding{}, false
	}

	switch {
	case request.Under(c, "metadata", "ownerReferences"):
		if !o.ParentGone && (o.Parent == nil || !resource.Deleting(o.Parent)) {
			return finding.Finding{}, false
		}
	case request.Under(c, "metadata", "annotations") && input.MayRelease(o, by):
		if len(c.Path) < 3 || c.Path[2].Field != v1alpha1.AnnotationRelease {
			return finding.Finding{}, false
		}
	case !o.ComposesMore(c):
		return finding.Finding{}, false
	}

	return finding.Finding{Cause: finding.Cause{Initiator: by.User.Name}}, true
}
