// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grant is what allowances grant: which of the parent's may be used for a change and which has served, by which digest
// a change is approved, and what may go out to the external system.
//
// Its files:
//   - allowed.go: whether an allowance of the parent serves a change: not used up ([Consumed]), still given by its policy, for this user
//     ([MayExercise]), not given before the change was held; its External part; its end
//   - approved.go: whether the allowance of a ChangeApproval is for exactly this change ([Approved]), and whether it is used
//   - digested.go: what the digest of a change covers ([Digested])
//   - external.go: whether an allowed change may reach the external object: with External actions ([LetsOut]), or while it is built
//     up ([Stays]);
//     changes that replace it ([Replaces]), and deletions that take it from another composed resource
package grant

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Consumed reports whether an allowance of the parent has served, as far as this
// change of this child is concerned.
func Consumed(o request.Objects, how request.Manner, above *input.Above, now time.Time, a v1alpha1.Allowance, c change.Change) bool {
	if allowance.OfApproval(a) {
		return approvalUsed(o, above, a)
	}

	if how.Settles {
		return allowance.Settled(o.Parent, a)
	}

	// A deletion is asked about again once what it gives is recorded.
	return allowance.Served(o.Parent, a) ||
		!allowance.ByDeletion(a) && allowance.ByUse(o.Parent, a) && usedUp(o, above, now, a, c)
}

// CompareRank orders candidates, which one object carries, by the field whose change gave them, then by policy.
func CompareRank(a, b v1alpha1.Allowance) int {
	return cmp.Or(
		strings.Compare(allowance.Field(a), allowance.Field(b)),
		strings.Compare(a.Policy, b.Policy), strings.Compare(a.Mutation, b.Mutation),
	)
}

// MayExercise reports whether the user is among those whom the granting policy
// lets make the mutation, as it is now. Of a policy that is not in force, or that
// would no longer give the allowance, nobody is; where the allowance names none,
// anybody. Who deletes for others may always.
func MayExercise(o request.Objects, by request.Writer, policies *policy.Set, a v1alpha1.Allowance, c change.Change) bool {
	if a.Policy == "" || o.Operation == request.OperationDelete && request.DeletesForOthers(by.User) {
		return true
	}

	p := policies.ByName(a.Policy)

	return p != nil && StillGives(o, p, a, c) && policy.MayExercise(p.Spec().Subjects, by.User)
}

// StillGives reports whether a policy as it is now would give an allowance that it
// gave, as far as a change is concerned.
func StillGives(o request.Objects, p *policy.Policy, a v1alpha1.Allowance, c change.Change) bool {
	field := allowance.Field(a)

	return p.Allows(o.GroupKind(), c) && (field == "" || p.About(o.Parent.GroupVersionKind().GroupKind(), field))
}

// RidingAlong returns the parent's External entries of the same policy and
// generation, as far as the policy allows those actions now.
func RidingAlong(policies *policy.Set, above *input.Above, a v1alpha1.Allowance) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, e := range above.Allowances {
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

// Premature reports whether the deletion of the parent gave an allowance, and the
// parent is not being deleted: that was refused after it was recorded.
func Premature(o request.Objects, a v1alpha1.Allowance) bool {
	return allowance.ByDeletion(a) && !resource.Deleting(o.Parent)
}

// Until is when what a change allows to create and to delete ends; nil where it
// will be seen that it has served.
func Until(o request.Objects, now time.Time, hop v1alpha1.Hop) *metav1.Time {
	if o.Operation != request.OperationUpdate {
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
func usedUp(o request.Objects, above *input.Above, now time.Time, a v1alpha1.Allowance, c change.Change) bool {
	switch {
	case c.Field != v1alpha1.MutationCreate && c.Field != v1alpha1.MutationDelete:
		return allowance.Used(above.RecordOf(o.Old), a)
	case a.Until == nil:
		return o.ParentBuilt(now)
	default:
		return !now.Before(a.Until.Time)
	}
}

// Usable are the allowances of the parent of which the record of a child shows
// whether it has used them.
func Usable(o request.Objects, how request.Manner, above *input.Above) []v1alpha1.Allowance {
	return slices.DeleteFunc(slices.Clone(above.Allowances), func(a v1alpha1.Allowance) bool {
		if how.Settles && !allowance.OfApproval(a) {
			return true
		}

		return allowance.External(a) || allowance.Served(o.Parent, a) || !allowance.ByUse(o.Parent, a)
	})
}

// Bars reports whether a change is held since before an allowance of the parent, so that this does not serve it.
func Bars(o request.Objects, above *input.Above, places *request.Places, a v1alpha1.Allowance, c change.Change) bool {
	since, held := input.HeldSince(o, above, places, c)

	return held && !since.Serves(a, input.StoredFields(above))
}
