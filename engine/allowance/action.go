// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"slices"
	"strings"

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

// ActionsOfWindow are the actions that a window gives by itself to what it
// selects; none where it is about anything else, or selects nothing. Deletions are
// not among them: they take an object that is deleted.
func ActionsOfWindow(w *v1alpha1.UpgradeAllowance) []string {
	if w.Spec.Selector == nil {
		return nil
	}

	var out []string

	for _, perm := range w.Spec.Allow {
		if perm.Relation != v1alpha1.RelationExternal {
			return nil
		}

		out = append(out, perm.Mutations...)
	}

	return slices.DeleteFunc(out, deletes)
}

// deletes reports whether an action deletes what is outside, as the systems that are
// known call it.
func deletes(action string) bool {
	return slices.ContainsFunc([]string{"delete", "destroy", "prune", "uninstall"}, func(name string) bool {
		return strings.EqualFold(action, name)
	})
}
