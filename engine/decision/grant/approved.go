// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"sync"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
)

// Approved tells which allowances are of an approval of a change: by its digest, or by
// what the composition function says that Crossplane applies. What the API server and
// other webhooks make of it is not what the function has seen.
func Approved(
	o request.Objects, by request.Writer, how request.Manner, above *input.Above, places *request.Places,
	outside request.External, c change.Change,
) func(v1alpha1.Allowance) bool {
	kind := o.GroupKind()
	sum := sync.OnceValue(func() string { return digest.Of(Digested(o, places, outside, c)) })

	return func(a v1alpha1.Allowance) bool {
		return allowance.OfApproval(a) && !allowance.External(a) && a.Kind == kind.Kind && a.APIGroup == kind.Group &&
			(sum() == a.Digest || vouched(o, by, how, above, a, c))
	}
}

// vouched reports whether the writer is Crossplane, which brings a record by which the function
// has made use of an allowance for the change.
func vouched(o request.Objects, by request.Writer, how request.Manner, above *input.Above, a v1alpha1.Allowance, c change.Change) bool {
	if !by.IsCrossplane() || o.Asked == nil || how.Settles {
		return false
	}

	return change.FieldCovers(a.Mutation, c.Path) && allowance.Used(above.RecordOf(o.Asked), a)
}

// approvalUsed reports whether an allowance of an approval has served: the object shows
// the use, or the function has reported it. One to delete serves until the object is gone.
func approvalUsed(o request.Objects, above *input.Above, a v1alpha1.Allowance) bool {
	return a.Mutation != v1alpha1.MutationDelete && (allowance.Used(above.RecordOf(o.Old), a) || above.Reports(o).Used(a))
}
