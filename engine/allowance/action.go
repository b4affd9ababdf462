// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// OfOtherSystems are the actions among some that are not Crossplane's, such as
// Terraform's apply: no gate serves them, and nothing in the cluster shows when
// they were taken.
func OfOtherSystems(actions []string) []string {
	return slices.DeleteFunc(slices.Clone(actions), func(action string) bool {
		switch action {
		case "*", "Observe", "Create", "Update", "Delete", "LateInitialize":
			return true
		default:
			return false
		}
	})
}

// lasting is what remains of an External allowance when all that a cluster can
// show has served: the actions of other systems. They may be taken, as often as
// it takes, until another change says otherwise. False where nothing does.
func lasting(a v1alpha1.Allowance) (v1alpha1.Allowance, bool) {
	if !External(a) {
		return a, false
	}

	a.Mutations = OfOtherSystems(a.Mutations)

	return a, len(a.Mutations) > 0
}
