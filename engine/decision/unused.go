// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// premature says whether the deletion of the parent gave an allowance, and the
// parent is not being deleted: that was refused after it was recorded.
func (d *decider) premature(a v1alpha1.Allowance) bool {
	return allowance.ByDeletion(a) && !resource.Deleting(d.Parent)
}

// openForAnother says whether a person deletes a managed resource whose gate is
// open because somebody else asked to delete it.
func (d *decider) openForAnother() bool {
	if d.Operation != OperationDelete || d.User.Machine() || !resource.IsManaged(d.Old) || resource.Deleting(d.Old) {
		return false
	}

	rec, err := allowance.ParseGate(d.Old)

	return err == nil && rec != nil && rec.State == v1alpha1.GateOpen && slices.Contains(rec.Actions, gate.ActionDelete) &&
		slices.ContainsFunc(rec.Allowances, allowance.OfDeletion)
}

// dropUnused takes from the object what an earlier deletion gave that was not
// made, and that this one does not give. A managed resource keeps it, for its
// first deletion opens its gate and is refused. True where there was any.
func (d *decider) dropUnused(granted []v1alpha1.Allowance) bool {
	have, err := allowance.Parse(d.New)
	if err != nil || resource.IsManaged(d.Old) {
		return false // What does not parse gives nothing either.
	}

	ends := d.ParentGone || d.Parent != nil && resource.Deleting(d.Parent)

	left := slices.DeleteFunc(slices.Clone(have), func(a v1alpha1.Allowance) bool {
		return allowance.ByDeletion(a) && (!ends || !allowance.Inherited(a)) &&
			!slices.ContainsFunc(granted, func(b v1alpha1.Allowance) bool { return allowance.SameGrant(a, b) })
	})
	if len(left) == len(have) {
		return false
	}

	for key, value := range withoutDeletion(d.New, left) {
		annotate(d.New, key, value)
	}

	return true
}

// withoutDeletion are the annotations of an object that is not deleted after all.
func withoutDeletion(u *unstructured.Unstructured, left []v1alpha1.Allowance) map[string]string {
	out := map[string]string{v1alpha1.AnnotationAllowances: allowance.FormatList(left)}

	if entries, err := allowance.ParseTrace(u); err == nil {
		out[v1alpha1.AnnotationTrace] = ""

		entries = slices.DeleteFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == v1alpha1.MutationDelete })
		if len(entries) > 0 {
			out[v1alpha1.AnnotationTrace] = allowance.FormatList(entries)
		}
	}

	return out
}

// Unused returns the annotations of an object that was to be deleted a while ago
// and is not: what its deletion would give is taken back. The empty value is of
// one that goes; nil where there is nothing to take back. What follows from the
// deletion of a parent, and what a managed resource's gate waits for, stays.
func Unused(u *unstructured.Unstructured) map[string]string {
	if resource.Deleting(u) || resource.IsManaged(u) {
		return nil
	}

	have, err := allowance.Parse(u)
	if err != nil {
		return nil
	}

	left := slices.DeleteFunc(slices.Clone(have), func(a v1alpha1.Allowance) bool {
		return allowance.ByDeletion(a) && !allowance.Inherited(a)
	})
	if len(left) == len(have) {
		return nil
	}

	return withoutDeletion(u, left)
}
