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
func (j *judge) byAllowance(c change.Change) (Finding, bool) {
	if f, ok := j.byAllowanceThat(c, func(a v1alpha1.Allowance) bool {
		return allowance.Covers(a, j.groupKind(), c)
	}); ok {
		return f, true
	}

	return j.byAllowanceThat(c, j.approved(c))
}

func (j *judge) byAllowanceThat(c change.Change, covers func(v1alpha1.Allowance) bool) (Finding, bool) {
	var (
		best     *v1alpha1.Allowance
		external []v1alpha1.Allowance
	)

	var stored []string

	since, held := j.heldSince(c)
	if held {
		stored = j.storedFields()
	}

	for i := range j.allowances {
		a := &j.allowances[i]
		if !covers(*a) || j.premature(*a) || j.consumed(*a, c) || !j.mayExercise(*a, c) ||
			held && !since.Serves(*a, stored) || !held && (j.perhapsEdited(*a, c) || j.perhapsRevised(*a, c)) {
			continue
		}

		external = allowance.Merge(external, j.ridingAlong(*a))

		if best == nil || compareRank(*a, *best) < 0 {
			best = a
		}
	}

	if best == nil {
		return Finding{}, false
	}

	return Finding{Policy: best.Policy, Approval: best.Approval, Digest: best.Digest, cause: cause{
		initiator: best.Initiator, trace: j.moved(best.Trace), external: external, propagated: true, by: best,
	}}, true
}

// bars reports whether a change is held since before an allowance of the parent, so that this does not serve it.
func (f *facts) bars(a v1alpha1.Allowance, c change.Change) bool {
	since, held := f.heldSince(c)

	return held && !since.Serves(a, f.storedFields())
}

// consumed reports whether an allowance of the parent has served, as far as this
// change of this child is concerned.
func (g *grants) consumed(a v1alpha1.Allowance, c change.Change) bool {
	if allowance.OfApproval(a) {
		return g.approvalUsed(a)
	}

	if g.ParentSettles {
		return allowance.Settled(g.Parent, a)
	}

	// A deletion is asked about again once what it gives is recorded.
	return allowance.Served(g.Parent, a) ||
		!allowance.ByDeletion(a) && allowance.ByUse(g.Parent, a) && g.usedUp(a, c)
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
func (g *grants) mayExercise(a v1alpha1.Allowance, c change.Change) bool {
	if a.Policy == "" || g.Operation == OperationDelete && deletesForOthers(g.User) {
		return true
	}

	p := g.Policies.ByName(a.Policy)

	return p != nil && g.stillGives(p, a, c) && policy.MayExercise(p.Spec().Subjects, g.User)
}

// stillGives reports whether a policy as it is now would give an allowance that it
// gave, as far as a change is concerned.
func (g *grants) stillGives(p *policy.Policy, a v1alpha1.Allowance, c change.Change) bool {
	field := allowance.Field(a)

	return p.Allows(g.groupKind(), c) && (field == "" || p.About(g.Parent.GroupVersionKind().GroupKind(), field))
}

// ridingAlong returns the parent's External entries of the same policy and
// generation, as far as the policy allows those actions now.
func (g *grants) ridingAlong(a v1alpha1.Allowance) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, e := range g.allowances {
		if allowance.External(e) && e.Source.Name == a.Source.Name && allowance.SameApproval(e, a) && e.ID == a.ID {
			if p := g.Policies.ByName(e.Policy); p != nil {
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
func (g *grants) premature(a v1alpha1.Allowance) bool {
	return allowance.ByDeletion(a) && !resource.Deleting(g.Parent)
}

// until is when what a change allows to create and to delete ends; nil where it
// will be seen that it has served.
func (g *grants) until(hop v1alpha1.Hop) *metav1.Time {
	if g.Operation != OperationUpdate {
		return nil
	}

	if _, settles := resource.ProgressOf(g.Old); settles || hop.Request == 0 && resource.ObservedGeneration(g.Old) > 0 {
		return nil
	}

	until := metav1.NewTime(g.Now.Add(v1alpha1.MaxUnobserved).UTC().Truncate(time.Second))

	return &until
}

// usedUp reports whether an allowance of the parent of which nothing else shows when
// it has served has done so, as far as this change of this child is concerned: a
// child uses it once. What is created or deleted leaves nothing to decide by; there
// it ends in time, and one that a creation gave with the phase that comes after it.
func (g *grants) usedUp(a v1alpha1.Allowance, c change.Change) bool {
	switch {
	case c.Field != v1alpha1.MutationCreate && c.Field != v1alpha1.MutationDelete:
		return allowance.Used(g.recordOf(g.Old), a)
	case a.Until == nil:
		return g.parentBuilt()
	default:
		return !g.Now.Before(a.Until.Time)
	}
}

// usable are the allowances of the parent of which the record of a child shows
// whether it has used them.
func (g *grants) usable() []v1alpha1.Allowance {
	return slices.DeleteFunc(slices.Clone(g.allowances), func(a v1alpha1.Allowance) bool {
		if g.ParentSettles && !allowance.OfApproval(a) {
			return true
		}

		return allowance.External(a) || allowance.Served(g.Parent, a) || !allowance.ByUse(g.Parent, a)
	})
}
