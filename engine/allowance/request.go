// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A change of metadata makes no new generation, and some kinds have none at all.
// What several such changes allow, one after the other, is distinguished by counting
// them: each is a request within its generation.

// RequestOf returns the request within its generation that gave an allowance; 0
// for the change that made the generation.
func RequestOf(a v1alpha1.Allowance) int64 {
	if n := len(a.Trace); n > 0 {
		return a.Trace[n-1].Request
	}

	return 0
}

// LastRequest returns the last request within a generation of an object, as its
// trace and its allowances show; 0 where there was none.
func LastRequest(u *unstructured.Unstructured, generation int64) int64 {
	var last int64

	entries, _ := ParseTrace(u) // What does not parse is reported when it is written.
	for _, e := range entries {
		if n := len(e.Trace); n > 0 && e.Generation == generation {
			last = max(last, e.Trace[n-1].Request)
		}
	}

	list, _ := Parse(u)
	for _, a := range list {
		if a.Generation == generation {
			last = max(last, RequestOf(a))
		}
	}

	return last
}

// SameRequest reports whether one change of an object gave two of its allowances.
func SameRequest(a, b v1alpha1.Allowance) bool { return CompareAge(a, b) == 0 }

// CompareAge orders allowances of one object by the request that gave them.
func CompareAge(a, b v1alpha1.Allowance) int {
	return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(RequestOf(a), RequestOf(b)))
}

// Settled reports whether the composition function that reports on an object says
// that it is done with an allowance of it.
func Settled(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	if OfApproval(a) {
		return false
	}

	p, _ := resource.ProgressOf(u)

	return settled(p, a)
}

// settled reports whether what has settled of an object includes an allowance of it.
func settled(p v1alpha1.Progress, a v1alpha1.Allowance) bool {
	if Observed(a, p.Settled.Generation) {
		return true
	}

	n := RequestOf(a)

	return n > 0 && p.Settled.Generation == a.Generation && p.Settled.Request >= n
}

// ByUse reports whether an allowance of an object is consumed by making use of it,
// for nothing else shows when it has served: of a kind that reports no observed
// generation, and one that was given within a generation.
func ByUse(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	if OfApproval(a) {
		return true
	}

	if _, settles := resource.ProgressOf(u); settles || grantingField(a) == v1alpha1.MutationDelete {
		return false
	}

	return RequestOf(a) > 0 || resource.ObservedGeneration(u) == 0
}
