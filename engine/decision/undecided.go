// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
)

// MustDecide says whether a request must not go on where it cannot be decided,
// because its parent cannot be read or something else fails: where what nobody
// asked for would be denied or held, and is to be so while we are down as well.
// Everything else goes on as it would without us. What it needs of the request
// is the objects, the user and the Enforcements; it returns the names of those
// that have it so. Whole is false where the objects are not the ones that
// Enforcements select by, as of a request to scale.
func MustDecide(req Request, whole bool) ([]string, bool) {
	d := &decider{Request: req}
	if d.complete() != nil || d.ourOwn() || exempt(d.User) {
		return nil, false
	}

	var out []string

	for _, e := range d.Enforcements {
		if e.Spec().FailurePolicy != v1alpha1.FailurePolicyIgnore &&
			enforcement.Strictness(e.Action()) >= enforcement.Strictness(v1alpha1.ActionHold) && d.mayGovern(e, whole) {
			out = append(out, e.Name())
		}
	}

	slices.Sort(out)

	// What is held without an Enforcement is not stored while we are down either.
	return out, len(out) > 0 || d.action() == v1alpha1.ActionHold
}

// mayGovern says whether an Enforcement governs the object, or might.
func (d *decider) mayGovern(e *enforcement.Enforcement, whole bool) bool {
	in := d.input()

	if whole {
		governs, _ := e.Governs(d.Resource, in) // What cannot be evaluated fails as it is to.

		return governs || e.Unsure(d.Resource, in)
	}

	return e.Covers(d.Resource) && e.MaySelect(in)
}
