// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
)

// A change of which external object a managed resource stands for is a creation outside, and leaves the former object behind. So it
// takes External Create and Delete, and it destroys something, whoever asks for it and on whichever path.

// replaces reports whether a change has a managed resource behind a gate stand for another external object.
func replaces(o objects, outside outside, c change.Change) bool {
	return outside.gated && o.Old != nil && o.New != nil && c.Field != v1alpha1.MutationDelete &&
		identity.Changes(o.Old, o.New, c.Path, outside.identity) && gate.Stands(o.Old)
}

// succeeded reports whether a deletion would take an external object from another composed resource, which is to stand for it. Only
// who approves exactly that has seen it.
func succeeded(o objects, outside outside, found Finding) bool {
	return o.Operation == OperationDelete && outside.successor != "" && found.Approval == "" && gate.Stands(o.Old) && gate.Kept(o.Old) == "" &&
		!gate.Orphans(o.Old)
}

// takesFromSuccessor names what it takes.
func takesFromSuccessor(o objects, outside outside) string {
	return fmt.Sprintf("it would delete %s, which composed resource %q is to represent", stoodFor(o, outside), outside.successor)
}

// leavesBehind names the external object that such a change leaves behind.
func leavesBehind(o objects, outside outside) string {
	return fmt.Sprintf("it would orphan %s, which needs External Create and Delete", stoodFor(o, outside))
}

// stoodFor names the external object that the managed resource has stood for.
func stoodFor(o objects, outside outside) string {
	return identity.Describe(o.Old, identity.Of(o.Old, outside.identity))
}
