// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// The record remembers which allowances the gate has taken up. Those up to
// Consumed have served. Of those above it, Allowances has each with the actions
// it was taken up for: actions that are among the record's Actions are under
// way (or given up on, where the state is Closed), others have served.

func (m managed) consumed() int64 {
	if m.record == nil {
		return 0
	}

	return m.record.Consumed
}

// unserved returns the External allowances with an action that the Composition
// asks for and that has not served yet, each with these actions only.
func (p planning) unserved() []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	replaced := len(p.m.replaced()) > 0

	for _, a := range p.m.allowances {
		if !allowance.External(a) || replaced && !Replaces(a) {
			continue
		}

		if a.Mutations = p.m.remaining(p.limits, p.now, a); replaced {
			a.Mutations = slices.DeleteFunc(a.Mutations, func(action string) bool { return action != management.ActionCreate })
		}

		if len(a.Mutations) > 0 {
			out = append(out, a)
		}
	}

	if slices.Contains(actionsOf(out), management.ActionDelete) && p.m.withholdsDelete(p.shared, p.withhold) {
		out = without(out, management.ActionDelete)
	}

	if len(out) > 0 && p.m.differs() {
		return without(without(out, management.ActionUpdate), management.ActionCreate)
	}

	return p.m.withholdUpdate(out)
}

// withholdsDelete reports whether a Delete that is allowed waits: for the parent to be kept, or as another managed resource stands
// for the same external object. One that is open waits for the latter alone.
func (m managed) withholdsDelete(shared *sharing, withhold bool) bool {
	if slices.Contains(m.current, management.ActionDelete) {
		return shared.twinned()
	}

	return withhold || shared.is()
}

// differs reports whether the spec has, on record, what somebody stored while Kausality was not asked. A gate that opens for
// another change would let that out too.
func (m managed) differs() bool {
	if m.record == nil || unproven(m.record) {
		return false
	}

	withheld, err := wish.Withheld(m.u)

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
func (m managed) remaining(limits limits, now time.Time, a v1alpha1.Allowance) []string {
	if a.Generation <= m.consumed() {
		return nil
	}

	return slices.DeleteFunc(m.asked(limits, now, a), func(action string) bool {
		return m.recorded(a, action) && !slices.Contains(m.record.Actions, action)
	})
}

// asked returns the actions of an allowance that the Composition asks for, and
// that there is something to do for: of one that a deletion gave, that is Delete, and of no other one.
// Its policy may allow more, for other fields. Providers delete nothing because of a change: what Delete would
// let through is the deletion of the managed resource alone, which is not allowed.
func (m managed) asked(limits limits, now time.Time, a v1alpha1.Allowance) []string {
	deletes := allowance.ByDeletion(a)

	return slices.DeleteFunc(management.Acting(a.Mutations), func(action string) bool {
		return !slices.Contains(m.desired, action) || deletes != (action == management.ActionDelete) || m.unmade(limits, now, a, action)
	})
}

// recorded reports whether the record has an allowance with an action.
func (m managed) recorded(a v1alpha1.Allowance, action string) bool {
	return m.record != nil && has(m.record.Allowances, a, action)
}

// has reports whether a list has an allowance with an action.
func has(list []v1alpha1.Allowance, a v1alpha1.Allowance, action string) bool {
	return slices.ContainsFunc(list, func(b v1alpha1.Allowance) bool {
		return allowance.SameGiver(a, b) && a.Generation == b.Generation && a.Initiator == b.Initiator &&
			slices.Contains(management.Acting(b.Mutations), action)
	})
}

// unrecorded reports whether the gate is to serve an allowance that its record
// does not know. One for the first creation is served as well, whatever came to the spec since.
func (m managed) unrecorded(pending []v1alpha1.Allowance, serves []string) bool {
	building := m.creating() && m.generations()

	return slices.ContainsFunc(pending, func(a v1alpha1.Allowance) bool {
		return (!building || !creates(a)) && slices.ContainsFunc(a.Mutations, func(action string) bool {
			return slices.Contains(serves, action) && !m.recorded(a, action)
		})
	})
}

// creates reports whether an allowance is for what an XR makes while it is built up.
func creates(a v1alpha1.Allowance) bool {
	actions := management.Acting(a.Mutations)

	return (a.Source.Type == v1alpha1.SourceCreation || a.Source.Type == v1alpha1.SourceApproval) &&
		slices.Contains(actions, management.ActionCreate) && !slices.Contains(actions, management.ActionDelete)
}

// taking returns what the record has to remember of allowances while the gate
// is open for some actions: those it takes up, and those it took up before
// which have served or are under way still.
func (m managed) taking(pending []v1alpha1.Allowance, serves []string) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, a := range pending {
		a.Mutations = slices.DeleteFunc(slices.Clone(a.Mutations), func(action string) bool { return !slices.Contains(serves, action) })
		if len(a.Mutations) > 0 {
			out = append(out, a)
		}
	}

	if m.record == nil {
		return out
	}

	for _, e := range m.record.Allowances {
		taken := out
		e.Mutations = slices.DeleteFunc(management.Acting(e.Mutations), func(action string) bool {
			dropped := slices.Contains(m.record.Actions, action) && !slices.Contains(serves, action)

			return dropped || has(taken, e, action)
		})

		if e.Generation > m.consumed() && len(e.Mutations) > 0 {
			out = append(out, e)
		}
	}

	return out
}

// notLanded returns the actions of an allowance that remain when what the gate
// is open for has landed.
func (m managed) notLanded(limits limits, now time.Time, a v1alpha1.Allowance) []string {
	return slices.DeleteFunc(m.remaining(limits, now, a), m.lands)
}

// landedOf returns the actions of a recorded allowance that have served when
// what the gate is open for has landed.
func (m managed) landedOf(e v1alpha1.Allowance) []string {
	return slices.DeleteFunc(management.Acting(e.Mutations), func(action string) bool {
		return slices.Contains(m.record.Actions, action) && !m.lands(action)
	})
}

// lands reports whether an action has served when what the gate is open for has landed. Delete serves until the
// resource is gone.
func (m managed) lands(action string) bool {
	return slices.Contains(m.record.Actions, action) && action != management.ActionDelete
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
