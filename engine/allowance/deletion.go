// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import "github.com/kausality-io/kausality-crossplane/apis/v1alpha1"

// ByDeletion reports whether the deletion of the object that carries it gave an
// allowance. It serves while the object is being deleted, and not before: what
// was asked for may have been refused since.
func ByDeletion(a v1alpha1.Allowance) bool { return grantingField(a) == v1alpha1.MutationDelete }

// Inherited reports whether an allowance that a deletion gave follows from that of a
// parent.
func Inherited(a v1alpha1.Allowance) bool {
	n := len(a.Trace)

	return ByDeletion(a) && n > 1 && a.Trace[n-2].Field == v1alpha1.MutationDelete
}
