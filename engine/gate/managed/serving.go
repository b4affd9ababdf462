// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Consumed is the generation up to which allowances have served; 0 for none.
func (m Resource) Consumed() int64 {
	if m.Record == nil {
		return 0
	}

	return m.Record.Consumed
}

// ActionsOf are the actions of all allowances of a list, as often as they are given.
func ActionsOf(list []v1alpha1.Allowance) []string {
	var out []string
	for _, a := range list {
		out = append(out, a.Mutations...)
	}

	return out
}

// Without takes an action from allowances.
func Without(allowances []v1alpha1.Allowance, action string) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, a := range allowances {
		a.Mutations = slices.DeleteFunc(slices.Clone(a.Mutations), func(m string) bool { return m == action })
		if len(a.Mutations) > 0 {
			out = append(out, a)
		}
	}

	return out
}

// Foreign reports whether all verbs of an External allowance are another system's,
// such as Terraform's apply, which no gate serves.
func Foreign(actions []string) bool { return len(ForeignOf(actions)) == len(actions) }

// ForeignOf are the verbs of these that are another system's.
func ForeignOf(actions []string) []string { return allowance.OfOtherSystems(actions) }

// Remaining returns the actions of an allowance that have not served yet.
func (m Resource) Remaining(limits Limits, now time.Time, a v1alpha1.Allowance) []string {
	if a.Generation <= m.Consumed() {
		return nil
	}

	return slices.DeleteFunc(m.asked(limits, now, a), func(action string) bool {
		return m.Recorded(a, action) && !slices.Contains(m.Record.Actions, action)
	})
}

// asked returns the actions of an allowance that the Composition asks for, and
// that there is something to do for: of one that a deletion gave, that is Delete, and of no other one.
// Its policy may allow more, for other fields. Providers delete nothing because of a change: what Delete would
// let through is the deletion of the managed resource alone, which is not allowed.
func (m Resource) asked(limits Limits, now time.Time, a v1alpha1.Allowance) []string {
	deletes := allowance.ByDeletion(a)

	return slices.DeleteFunc(management.Acting(a.Mutations), func(action string) bool {
		return !slices.Contains(m.Desired, action) || deletes != (action == management.ActionDelete) || m.unmade(limits, now, a, action)
	})
}

// Recorded reports whether the record has an allowance with an action.
func (m Resource) Recorded(a v1alpha1.Allowance, action string) bool {
	return m.Record != nil && Has(m.Record.Allowances, a, action)
}

// Has reports whether a list has an allowance with an action.
func Has(list []v1alpha1.Allowance, a v1alpha1.Allowance, action string) bool {
	return slices.ContainsFunc(list, func(b v1alpha1.Allowance) bool {
		return allowance.SameGiver(a, b) && a.Generation == b.Generation && a.Initiator == b.Initiator &&
			slices.Contains(management.Acting(b.Mutations), action)
	})
}

// Differs reports whether the spec has, on record, what somebody stored while Kausality was not asked. A gate that opens for
// another change would let that out too.
func (m Resource) Differs() bool {
	if m.Record == nil || Unproven(m.Record) {
		return false
	}

	withheld, err := wish.Withheld(m.Object)

	return err != nil || withheld.Repairs("spec", "forProvider") || withheld.Repairs("spec", "initProvider")
}

// Creates reports whether an allowance is for what an XR makes while it is built up.
func Creates(a v1alpha1.Allowance) bool {
	actions := management.Acting(a.Mutations)

	return (a.Source.Type == v1alpha1.SourceCreation || a.Source.Type == v1alpha1.SourceApproval) &&
		slices.Contains(actions, management.ActionCreate) && !slices.Contains(actions, management.ActionDelete)
}
