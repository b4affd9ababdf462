// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byAllowance searches for an unconsumed allowance of the parent that covers the
// change and that the user may exercise. The trace is of the first by granting
// hop; what rides along is of all of them. One of an approval is used where there is no
// other.
func byAllowance(in *inputs, c change.Change) (Finding, bool) {
	if f, ok := byAllowanceThat(in, c, func(a v1alpha1.Allowance) bool {
		return allowance.Covers(a, in.o.groupKind(), c)
	}); ok {
		return f, true
	}

	return byAllowanceThat(in, c, approved(in.o, in.by, in.how, in.above, in.places, in.outside, c))
}

func byAllowanceThat(in *inputs, c change.Change, covers func(v1alpha1.Allowance) bool) (Finding, bool) {
	var (
		best     *v1alpha1.Allowance
		external []v1alpha1.Allowance
	)

	var stored []string

	since, held := heldSince(in.o, in.above, in.places, c)
	if held {
		stored = storedFields(in.above)
	}

	for i := range in.above.allowances {
		a := &in.above.allowances[i]
		if !covers(*a) || premature(in.o, *a) || consumed(in.o, in.how, in.above, in.now, *a, c) ||
			!mayExercise(in.o, in.by, in.auth.Policies, *a, c) {
			continue
		}

		// What is held it serves if it came later; what is not it serves if it is sure that this comes from it.
		if held && !since.Serves(*a, stored) {
			continue
		}

		if !held && (perhapsEdited(in.o, in.how, in.auth.Policies, in.above, in.places, in.desired, *a, c) ||
			perhapsRevised(in.o, in.how, in.places, in.desired, *a, c)) {
			continue
		}

		external = allowance.Merge(external, ridingAlong(in.auth.Policies, in.above, *a))

		if best == nil || compareRank(*a, *best) < 0 {
			best = a
		}
	}

	if best == nil {
		return Finding{}, false
	}

	return Finding{Policy: best.Policy, Approval: best.Approval, Digest: best.Digest, cause: cause{
		initiator: best.Initiator, trace: in.o.moved(best.Trace), external: external, propagated: true, by: best,
	}}, true
}

// bars reports whether a change is held since before an allowance of the parent, so that this does not serve it.
func bars(o objects, above *above, places *places, a v1alpha1.Allowance, c change.Change) bool {
	since, held := heldSince(o, above, places, c)

	return held && !since.Serves(a, storedFields(above))
}

// consumed reports whether an allowance of the parent has served, as far as this
// change of this child is concerned.
func consumed(o objects, how manner, above *above, now time.Time, a v1alpha1.Allowance, c change.Change) bool {
	if allowance.OfApproval(a) {
		return approvalUsed(o, above, a)
	}

	if how.settles {
		return allowance.Settled(o.Parent, a)
	}

	// A deletion is asked about again once what it gives is recorded.
	return allowance.Served(o.Parent, a) ||
		!allowance.ByDeletion(a) && allowance.ByUse(o.Parent, a) && usedUp(o, above, now, a, c)
}

// compareRank orders candidates, which one object carries, by the field whose change gave them, then by policy.
func compareRank(a, b v1alpha1.Allowance) int {
	return cmp.Or(
		strings.Compare(allowance.Field(a), allowance.Field(b)),
		strings.Compare(a.Policy, b.Policy), strings.Compare(a.Mutation, b.Mutation),
	)
}

// mayExercise reports whether the user is among those whom the granting policy
// lets make the mutation, as it is now. Of a policy that is not in force, or that
// would no longer give the allowance, nobody is; where the allowance names none,
// anybody. Who deletes for others may always.
func mayExercise(o objects, by writer, policies *policy.Set, a v1alpha1.Allowance, c change.Change) bool {
	if a.Policy == "" || o.Operation == OperationDelete && deletesForOthers(by.User) {
		return true
	}

	p := policies.ByName(a.Policy)

	return p != nil && stillGives(o, p, a, c) && policy.MayExercise(p.Spec().Subjects, by.User)
}

// stillGives reports whether a policy as it is now would give an allowance that it
// gave, as far as a change is concerned.
func stillGives(o objects, p *policy.Policy, a v1alpha1.Allowance, c change.Change) bool {
	field := allowance.Field(a)

	return p.Allows(o.groupKind(), c) && (field == "" || p.About(o.Parent.GroupVersionKind().GroupKind(), field))
}

// ridingAlong returns the parent's External entries of the same policy and
// generation, as far as the policy allows those actions now.
func ridingAlong(policies *policy.Set, above *above, a v1alpha1.Allowance) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, e := range above.allowances {
		if allowance.External(e) && e.Source.Name == a.Source.Name && allowance.SameApproval(e, a) && e.ID == a.ID {
			if p := policies.ByName(e.Policy); p != nil {
				if e.Mutations = p.External(e.Mutations); len(e.Mutations) == 0 {
					continue
				}
			}

			out = append(out, e)
		}
	}

	return out
}

// premature reports whether the deletion of the parent gave an allowance, and the
// parent is not being deleted: that was refused after it was recorded.
func premature(o objects, a v1alpha1.Allowance) bool {
	return allowance.ByDeletion(a) && !resource.Deleting(o.Parent)
}

// until is when what a change allows to create and to delete ends; nil where it
// will be seen that it has served.
func until(o objects, now time.Time, hop v1alpha1.Hop) *metav1.Time {
	if o.Operation != OperationUpdate {
		return nil
	}

	if _, settles := resource.ProgressOf(o.Old); settles || hop.Request == 0 && resource.ObservedGeneration(o.Old) > 0 {
		return nil
	}

	until := metav1.NewTime(now.Add(v1alpha1.MaxUnobserved).UTC().Truncate(time.Second))

	return &until
}

// usedUp reports whether an allowance of the parent of which nothing else shows when
// it has served has done so, as far as this change of this child is concerned: a
// child uses it once. What is created or deleted leaves nothing to decide by; there
// it ends in time, and one that a creation gave with the phase that comes after it.
func usedUp(o objects, above *above, now time.Time, a v1alpha1.Allowance, c change.Change) bool {
	switch {
	case c.Field != v1alpha1.MutationCreate && c.Field != v1alpha1.MutationDelete:
		return allowance.Used(above.recordOf(o.Old), a)
	case a.Until == nil:
		return o.parentBuilt(now)
	default:
		return !now.Before(a.Until.Time)
	}
}

// usable are the allowances of the parent of which the record of a child shows
// whether it has used them.
func usable(o objects, how manner, above *above) []v1alpha1.Allowance {
	return slices.DeleteFunc(slices.Clone(above.allowances), func(a v1alpha1.Allowance) bool {
		if how.settles && !allowance.OfApproval(a) {
			return true
		}

		return allowance.External(a) || allowance.Served(o.Parent, a) || !allowance.ByUse(o.Parent, a)
	})
}
