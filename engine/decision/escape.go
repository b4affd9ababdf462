// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Selectors and conditions are asked of the object as it is and as it is asked for,
// so that no write frees itself. Two writes would: one that takes the label away,
// and one that makes the change. So what they read is gated like any field, of
// what an Enforcement governs.

// freesItself reports whether an Enforcement that governs the object would no
// longer govern it once the request is stored.
func freesItself(target enforcement.Target, in policy.Input, governing []*enforcement.Enforcement) bool {
	in.OldObject = in.Object

	return slices.ContainsFunc(governing, func(e *enforcement.Enforcement) bool {
		governs, _ := e.Governs(target, in) // What fails was reported.

		return !governs
	})
}

// crossplaneLabels start the labels that Crossplane puts on its kinds and on
// what it composes.
const crossplaneLabels = "crossplane.io/"

// frees reports whether a change of what an Enforcement governs may free it from that,
// or bring it under a policy or a window that it was not under: in a write that has
// the first effect any change may, and a label that a selector reads always. Of
// windows only those for the user count: others may set it, to say what the window is
// about.
func frees(o objects, by writer, policies *policy.Set, enforced enforced, windows windows, c change.Change) bool {
	if enforced.freed && (!c.Metadata() || under(c, "metadata", "labels") || under(c, "metadata", "annotations")) {
		return true
	}

	if len(enforced.governing) == 0 || !under(c, "metadata", "labels") || len(c.Path) < 3 {
		return false
	}

	label := c.Path[2].Field
	if by.isCrossplane() && strings.HasPrefix(label, crossplaneLabels) {
		return false // It is how Crossplane finds what belongs together.
	}

	return slices.ContainsFunc(policies.For(o.groupKind()), func(p *policy.Policy) bool { return p.SelectsBy(label) }) ||
		slices.ContainsFunc(windows.all, func(u *allowance.Window) bool {
			return u.Spec.ServiceAccount == by.User.Name && u.SelectsBy(label)
		})
}
