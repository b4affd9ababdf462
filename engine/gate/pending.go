// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// The record remembers which allowances the gate has taken up. Those up to
// Consumed have served. Of those above it, Allowances has each with the actions
// it was taken up for: actions that are among the record's Actions are under
// way (or given up on, where the state is Closed), others have served.

func (v *view) consumed() int64 {
	if v.record == nil {
		return 0
	}

	return v.record.Consumed
}

// unserved returns the External allowances with an action that the Composition
// asks for and that has not served yet, each with these actions only.
func (s serving) unserved() []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	replaced := len(s.replaced()) > 0

	for _, a := range s.allowances {
		if !allowance.External(a) || replaced && !Replaces(a) {
			continue
		}

		if a.Mutations = s.remaining(a); replaced {
			a.Mutations = slices.DeleteFunc(a.Mutations, func(action string) bool { return action != ActionCreate })
		}

		if len(a.Mutations) > 0 {
			out = append(out, a)
		}
	}

	if slices.Contains(actionsOf(out), ActionDelete) && s.withholdsDelete() {
		out = without(out, ActionDelete)
	}

	if len(out) > 0 && s.differs() {
		return without(without(out, ActionUpdate), ActionCreate)
	}

	return s.withholdUpdate(out)
}

// withholdsDelete reports whether a Delete that is allowed waits: for the parent to be kept, or as another managed resource stands
// for the same external object. One that is open waits for the latter alone.
func (s serving) withholdsDelete() bool {
	if slices.Contains(s.current, ActionDelete) {
		return s.twinned()
	}

	return s.opts.WithholdDelete || s.sharing()
}

// differs reports whether the spec has, on record, what somebody stored while Kausality was not asked. A gate that opens for
// another change would let that out too.
func (s serving) differs() bool {
	if s.record == nil || unproven(s.record) {
		return false
	}

	withheld, err := wish.Withheld(s.u)

	return err != nil || withheld.Repairs("spec", "forProvider") || withheld.Repairs("spec", "initProvider")
}

// without takes an action from allowances.
func without(allowances []v1alpha1.Allowance, action string) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, a := range allowances {
		a.Mutations = slices.DeleteFunc(slices.Clone(a.Mutations), func(m string) bool { return m == action })
		if len(a.Mutations) > 0 {
			out = append(out, a)
		}
	}

	return out
}

// remaining returns the actions of an allowance that have not served yet.
func (s serving) remaining(a v1alpha1.Allowance) []string {
	if a.Generation <= s.consumed() {
		return nil
	}

	return slices.DeleteFunc(s.asked(a), func(action string) bool {
		return s.recorded(a, action) && !slices.Contains(s.record.Actions, action)
	})
}

// asked returns the actions of an allowance that the Composition asks for, and
// that there is something to do for: of one that a deletion gave, that is Delete, and of no other one.
// Its policy may allow more, for other fields. Providers delete nothing because of a change: what Delete would
// let through is the deletion of the managed resource alone, which is not allowed.
func (s serving) asked(a v1alpha1.Allowance) []string {
	deletes := allowance.ByDeletion(a)

	return slices.DeleteFunc(Acting(a.Mutations), func(action string) bool {
		return !slices.Contains(s.desired, action) || deletes != (action == ActionDelete) || s.unmade(a, action)
	})
}

// recorded reports whether the record has an allowance with an action.
func (s serving) recorded(a v1alpha1.Allowance, action string) bool {
	return s.record != nil && has(s.record.Allowances, a, action)
}

// has reports whether a list has an allowance with an action.
func has(list []v1alpha1.Allowance, a v1alpha1.Allowance, action string) bool {
	return slices.ContainsFunc(list, func(b v1alpha1.Allowance) bool {
		return allowance.SameGiver(a, b) && a.Generation == b.Generation && a.Initiator == b.Initiator &&
			slices.Contains(Acting(b.Mutations), action)
	})
}

// unrecorded reports whether the gate is to serve an allowance that its record
// does not know. One for the first creation is served as well, whatever came to the spec since.
func (s serving) unrecorded(serves []string) bool {
	building := s.creating() && s.generations()

	return slices.ContainsFunc(s.pending, func(a v1alpha1.Allowance) bool {
		return (!building || !creates(a)) && slices.ContainsFunc(a.Mutations, func(action string) bool {
			return slices.Contains(serves, action) && !s.recorded(a, action)
		})
	})
}

// creates reports whether an allowance is for what an XR makes while it is built up.
func creates(a v1alpha1.Allowance) bool {
	actions := Acting(a.Mutations)

	return (a.Source.Type == v1alpha1.SourceCreation || a.Source.Type == v1alpha1.SourceApproval) &&
		slices.Contains(actions, ActionCreate) && !slices.Contains(actions, ActionDelete)
}

// taking returns what the record has to remember of allowances while the gate
// is open for some actions: those it takes up, and those it took up before
// which have served or are under way still.
func (s serving) taking(serves []string) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, a := range s.pending {
		a.Mutations = slices.DeleteFunc(slices.Clone(a.Mutations), func(action string) bool { return !slices.Contains(serves, action) })
		if len(a.Mutations) > 0 {
			out = append(out, a)
		}
	}

	if s.record == nil {
		return out
	}

	for _, e := range s.record.Allowances {
		taken := out
		e.Mutations = slices.DeleteFunc(Acting(e.Mutations), func(action string) bool {
			dropped := slices.Contains(s.record.Actions, action) && !slices.Contains(serves, action)

			return dropped || has(taken, e, action)
		})

		if e.Generation > s.consumed() && len(e.Mutations) > 0 {
			out = append(out, e)
		}
	}

	return out
}

// notLanded returns the actions of an allowance that remain when what the gate
// is open for has landed.
func (s serving) notLanded(a v1alpha1.Allowance) []string {
	return slices.DeleteFunc(s.remaining(a), s.lands)
}

// landedOf returns the actions of a recorded allowance that have served when
// what the gate is open for has landed.
func (s serving) landedOf(e v1alpha1.Allowance) []string {
	return slices.DeleteFunc(Acting(e.Mutations), func(action string) bool {
		return slices.Contains(s.record.Actions, action) && !s.lands(action)
	})
}

// lands reports whether an action has served when what the gate is open for has landed. Delete serves until the
// resource is gone.
func (s serving) lands(action string) bool {
	return slices.Contains(s.record.Actions, action) && action != ActionDelete
}

// foreign reports whether all verbs of an External allowance are another system's,
// such as Terraform's apply, which no gate serves.
func foreign(actions []string) bool { return len(foreignOf(actions)) == len(actions) }

func foreignOf(actions []string) []string { return allowance.OfOtherSystems(actions) }

func actionsOf(list []v1alpha1.Allowance) []string {
	var out []string
	for _, a := range list {
		out = append(out, a.Mutations...)
	}

	return out
}
