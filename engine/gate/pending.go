// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// The record remembers which allowances the gate has taken up. Those up to
// Consumed have served. Of those above it, Allowances has each with the actions
// it was taken up for: actions that are among the record's Actions are under
// way (or given up on, where the state is Closed), others have served.

// unserved returns the External allowances with an action that the Composition
// asks for and that has not served yet, each with these actions only.
func (p planning) unserved() []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	replaced := len(p.m.Replaced()) > 0

	for _, a := range p.m.Allowances {
		if !allowance.External(a) || replaced && !managed.Replaces(a) {
			continue
		}

		if a.Mutations = p.m.Remaining(p.limits, p.now, a); replaced {
			a.Mutations = slices.DeleteFunc(a.Mutations, func(action string) bool { return action != management.ActionCreate })
		}

		if len(a.Mutations) > 0 {
			out = append(out, a)
		}
	}

	if slices.Contains(managed.ActionsOf(out), management.ActionDelete) && withholdsDelete(p.m, p.shared, p.withhold) {
		out = managed.Without(out, management.ActionDelete)
	}

	if len(out) > 0 && p.m.Differs() {
		return managed.Without(managed.Without(out, management.ActionUpdate), management.ActionCreate)
	}

	return p.m.WithholdUpdate(out)
}

// withholdsDelete reports whether a Delete that is allowed waits: for the parent to be kept, or as another managed resource stands
// for the same external object. One that is open waits for the latter alone.
func withholdsDelete(m managed.Resource, shared *sharing, withhold bool) bool {
	if slices.Contains(m.Current, management.ActionDelete) {
		return shared.twinned()
	}

	return withhold || shared.is()
}

// unrecorded reports whether the gate is to serve an allowance that its record
// does not know. One for the first creation is served as well, whatever came to the spec since.
func unrecorded(m managed.Resource, pending []v1alpha1.Allowance, serves []string) bool {
	building := m.Creating() && m.SaysGeneration()

	return slices.ContainsFunc(pending, func(a v1alpha1.Allowance) bool {
		return (!building || !managed.Creates(a)) && slices.ContainsFunc(a.Mutations, func(action string) bool {
			return slices.Contains(serves, action) && !m.Recorded(a, action)
		})
	})
}

// taking returns what the record has to remember of allowances while the gate
// is open for some actions: those it takes up, and those it took up before
// which have served or are under way still.
func taking(m managed.Resource, pending []v1alpha1.Allowance, serves []string) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, a := range pending {
		a.Mutations = slices.DeleteFunc(slices.Clone(a.Mutations), func(action string) bool { return !slices.Contains(serves, action) })
		if len(a.Mutations) > 0 {
			out = append(out, a)
		}
	}

	if m.Record == nil {
		return out
	}

	for _, e := range m.Record.Allowances {
		taken := out
		e.Mutations = slices.DeleteFunc(management.Acting(e.Mutations), func(action string) bool {
			dropped := slices.Contains(m.Record.Actions, action) && !slices.Contains(serves, action)

			return dropped || managed.Has(taken, e, action)
		})

		if e.Generation > m.Consumed() && len(e.Mutations) > 0 {
			out = append(out, e)
		}
	}

	return out
}

// notLanded returns the actions of an allowance that remain when what the gate
// is open for has landed.
func notLanded(m managed.Resource, limits managed.Limits, now time.Time, a v1alpha1.Allowance) []string {
	return slices.DeleteFunc(m.Remaining(limits, now, a), func(action string) bool { return lands(m, action) })
}

// landedOf returns the actions of a recorded allowance that have served when
// what the gate is open for has landed.
func landedOf(m managed.Resource, e v1alpha1.Allowance) []string {
	return slices.DeleteFunc(management.Acting(e.Mutations), func(action string) bool {
		return slices.Contains(m.Record.Actions, action) && !lands(m, action)
	})
}

// lands reports whether an action has served when what the gate is open for has landed. Delete serves until the
// resource is gone.
func lands(m managed.Resource, action string) bool {
	return slices.Contains(m.Record.Actions, action) && action != management.ActionDelete
}
