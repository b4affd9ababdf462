// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
)

// A gate holds at the door: a change of what a provider acts upon that is not allowed, or that the gate would not let out, is
// held when it is requested. A composition function holds by itself what it would have applied.

// counts reports whether a change is of what a provider acts upon.
func counts(c change.Change) bool {
	return under(c, "spec") && !under(c, "spec", "managementPolicies") || externalName(c)
}

// externalName reports whether a change is of which external object is meant.
func externalName(c change.Change) bool {
	return under(c, "metadata", "annotations", identity.AnnotationExternalName)
}
