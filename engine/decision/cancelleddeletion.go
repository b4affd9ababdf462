// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// dropUnused takes from the object what an earlier deletion gave that was not
// made, and that this one does not give. A managed resource retains it, for its
// first deletion opens its gate and is refused. True where there was any.
func dropUnused(o objects, object *unstructured.Unstructured, granted []v1alpha1.Allowance) bool {
	have, err := allowance.Parse(object)
	if err != nil || resource.IsManaged(o.Old) {
		return false // What does not parse gives nothing either.
	}

	ends := o.ParentGone || o.Parent != nil && resource.Deleting(o.Parent)

	left := slices.DeleteFunc(slices.Clone(have), func(a v1alpha1.Allowance) bool {
		return allowance.ByDeletion(a) && (!ends || a.Source.From == "") &&
			!slices.ContainsFunc(granted, func(b v1alpha1.Allowance) bool { return allowance.SameGrant(a, b) })
	})
	if len(left) == len(have) {
		return false
	}

	for key, value := range withoutDeletion(object, left) {
		annotate(object, key, value)
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
// one that is removed; nil where there is nothing to take back. What follows from the
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
		return allowance.ByDeletion(a) && a.Source.From == ""
	})
	if len(left) == len(have) {
		return nil
	}

	return withoutDeletion(u, left)
}
