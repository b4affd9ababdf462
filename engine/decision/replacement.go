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
func (f *facts) replaces(c change.Change) bool {
	return f.gated && f.Old != nil && f.New != nil && c.Field != v1alpha1.MutationDelete &&
		identity.Changes(f.Old, f.New, c.Path, f.Settings.Identity) && gate.Stands(f.Old)
}

// succeeded reports whether a deletion would take an external object from another composed resource, which is to stand for it. Only
// who approves exactly that has seen it.
func (f *facts) succeeded(found Finding) bool {
	return f.Operation == OperationDelete && f.Successor != "" && found.Approval == "" && gate.Stands(f.Old) && gate.Kept(f.Old) == "" &&
		!gate.Orphans(f.Old)
}

// takesFromSuccessor names what it takes.
func (f *facts) takesFromSuccessor() string {
	return fmt.Sprintf("it would delete %s, which composed resource %q is to represent", f.stoodFor(), f.Successor)
}

// leavesBehind names the external object that such a change leaves behind.
func (f *facts) leavesBehind() string {
	return fmt.Sprintf("it would orphan %s, which needs External Create and Delete", f.stoodFor())
}

// stoodFor names the external object that the managed resource has stood for.
func (f *facts) stoodFor() string {
	return identity.Describe(f.Old, identity.Of(f.Old, f.Settings.Identity))
}
