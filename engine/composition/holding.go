// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// listed is a held change as the manager is told of it, without its cause.
func (r composed) listed(e v1alpha1.HeldChange, a finding.Approvable) v1alpha1.HeldChange {
	u := r.Observed
	if u == nil || e.Field == v1alpha1.MutationCreate {
		u = r.Desired
	}

	e.Ref = v1alpha1.ObjectReference{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
	}
	e.ComposedResource, e.Destroys = r.Name, e.Destroys || resource.Destroys(u, e.Field)
	e.Digest, e.Masked, e.Follows, e.Place = a.Digest, a.Masked, a.Follows, a.Place

	if e.Ref.Namespace == "" {
		e.Ref.Namespace = r.XR.GetNamespace() // All that a namespaced XR composes is in its namespace.
	}

	if u == r.Observed {
		e.Cause = cmp.Or(byHand(u, e.Field), e.Cause)
	}

	return e
}

// byHand is the cause of a change of a field that somebody has changed by hand; nil where
// nobody has.
func byHand(u *unstructured.Unstructured, field string) *v1alpha1.Cause {
	edits, err := allowance.ParseStored(u)
	if err != nil {
		return nil // Reported with the decision.
	}

	for _, e := range edits {
		if e.Field == field {
			return &v1alpha1.Cause{Type: v1alpha1.CauseDrift, User: e.Cause.User, Since: e.Cause.Since}
		}
	}

	return nil
}

// heldAsIs is a change of the observed resource that nobody can approve.
func (r composed) heldAsIs(h v1alpha1.HeldChange) condition.Held {
	return condition.Held{Resource: condition.Describe(r.Observed), Change: r.listed(h, finding.Approvable{})}
}

// wholeHeld is what is held of a creation or deletion: nothing or all of it.
func (r composed) wholeHeld(u *unstructured.Unstructured, d decision.Decision, field string) []condition.Held {
	i := slices.IndexFunc(d.Findings, func(f finding.Finding) bool { return f.Verdict == finding.Unallowed && f.Change.Field == field })
	if i < 0 {
		return nil
	}

	f := d.Findings[i]
	a := f.Approvable()
	h := condition.Held{
		Resource: condition.Describe(u), Change: r.listed(v1alpha1.HeldChange{Field: field, At: f.HeldAt(), Missing: f.Missing()}, a),
		Passed: r.mode == v1alpha1.ModeAudit, Policies: f.Policies(), Why: f.Why(), Briefly: f.Briefly(), OfEdit: f.OfEdit(),
	}

	if field == v1alpha1.MutationCreate {
		h.Resource = r.unmade(u)

		if r.mends() && r.madeBefore() && !lasting(u) {
			if text := r.whyNotRepaired(r.mending.was.Again[r.Name]); text != "" {
				h.Change.Missing, h.Why, h.Briefly, h.OfEdit = text, nil, nil, false
			}
		}
	}

	return []condition.Held{h}
}

// unmade describes a resource that is not there yet.
func (r composed) unmade(u *unstructured.Unstructured) string {
	return condition.Unmade(u.GetKind(), r.Name)
}

// heldOutside is what a managed resource's gate prevents on an external object
// that existed before it.
func (r composed) heldOutside() []condition.Held {
	observed := r.Observed

	desired, err := management.Desired(observed)
	if err != nil || !slices.Contains(desired, management.ActionUpdate) || !managed.Existing(observed) {
		return nil
	}

	reason := fmt.Sprintf("the external object existed before %s, and External Update is not allowed for all differences: "+
		"set the values of the external object, or add an AllowancePolicy that allows External Update with create of %s",
		condition.Describe(observed), observed.GetKind())

	var out []condition.Held

	for _, c := range managed.Differing(observed) {
		out = append(out, r.heldAsIs(hold.HeldBetween(c, reason, observed.Object)))
	}

	return out
}
