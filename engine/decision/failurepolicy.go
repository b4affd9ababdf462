// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// MustDecide reports whether a request must not go on where it cannot be decided,
// because its parent cannot be read or something else fails: where what is not
// allowed would be denied or held, and is to be so while we are down as well.
// Everything else continues as it would without us. What it needs of the request
// is the objects, the user and the Enforcements; it returns the names of those
// that have it so. Whole is false where the objects are not the ones that
// Enforcements select by, as of a request to scale.
func MustDecide(req request.Request, whole bool) ([]string, bool) {
	ledger := &authority.Ledger{}

	in, err := input.Asked(&req, request.Mutate, &ledger.Problems)
	if err != nil || input.NeverEnforced(in.Objects, req.Basis.Settings.Manager) || request.DeletesForOthers(in.Writer.User) {
		return nil, false
	}

	in.Authority = authority.New(&req, in.Objects, in.Writer, ledger)
	in.External.Gated = input.ReadGated(in.Objects, in.Writer)

	var out []string

	for _, e := range req.Basis.Enforcements {
		if e.Spec().FailurePolicy != v1alpha1.FailurePolicyIgnore &&
			enforcement.Strictness(e.Action()) >= enforcement.Strictness(v1alpha1.ActionHold) &&
			mayGovern(in.Objects, in.Authority.RawInput(), e, whole) {
			out = append(out, e.Name())
		}
	}

	slices.Sort(out)

	// What is held without an Enforcement is not stored while we are down either.
	return out, len(out) > 0 || rule.ActionOnUnallowed(in, nil) == v1alpha1.ActionHold
}

// mayGovern reports whether an Enforcement governs the object, or might.
func mayGovern(o request.Objects, in expression.Input, e *enforcement.Enforcement, whole bool) bool {
	target := o.EnforcementTarget()

	if whole {
		governs, _ := e.Governs(target, in) // What cannot be evaluated fails as it is to.

		return governs || e.Unsure(target, in)
	}

	return e.CoversTarget(target) && e.MaySelect(in)
}
