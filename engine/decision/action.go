// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// actionOnUnallowed is what to do about unallowed changes: the strictest of what
// the Enforcements say that govern the object, and of what is held without one.
func actionOnUnallowed(in *inputs, findings []Finding) v1alpha1.ValidationAction {
	switch {
	case in.how.Action != "":
		return in.how.Action
	case staysInNamespace(in.o, in.by) || staysWithClaim(in.o, in.by) || openForAnother(in.o, in.by):
		return v1alpha1.ActionDeny
	case deletesForOthers(in.by.User):
		return ""
	}

	strictest := v1alpha1.ValidationAction("")
	if in.o.Old != nil && resource.BoundToClaim(in.o.Old) {
		strictest = v1alpha1.ActionHold
	}

	if guarded(in.how, in.outside) { // A gate holds at the door.
		strictest = v1alpha1.ActionHold
	}

	unnamed := onlyUnnamed(in.o, in.by, in.auth, in.enforced, in.windows, findings)

	for _, e := range in.enforced.governing {
		if unnamed && e.IgnoresUnnamed() {
			continue
		}

		if a := actionOf(e); enforcement.Strictness(a) > enforcement.Strictness(strictest) {
			strictest = a
		}
	}

	return strictest
}

// onlyUnnamed reports whether something is unallowed, and all that is so is of fields
// that no policy names, and that no Enforcement depends on.
func onlyUnnamed(o objects, by writer, auth *authority, enforced enforced, windows windows, findings []Finding) bool {
	return !allAllowed(findings) && !slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Verdict == Unallowed && (!unnamed(o, by, auth, enforced, f.Change) || frees(o, by, auth.Policies, enforced, windows, f.Change))
	})
}
