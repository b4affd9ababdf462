// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// move plans a write. The generation it records is the one the write itself
// produces, and whatever has to last is counted from it.
func move(m managed.Resource, now time.Time, given windowsGiven, to Move, set []string, rec v1alpha1.GateRecord, why string) Plan {
	rec.V, rec.Generation = v1alpha1.RecordVersion, resource.Generation(m.Object)
	if !management.Same(m.Current, set) {
		rec.Generation++
	}

	rec.Since = metav1.NewTime(now.UTC().Truncate(time.Second))

	if rec.Identity == nil {
		rec.Identity = m.Recognised()
	}

	if m.Record != nil {
		rec.Unknown, rec.Keeps = m.Record.Unknown, m.Record.Keeps

		if m.Record.State == v1alpha1.GateClosed && rec.State == v1alpha1.GateClosed {
			rec.Since = m.Record.Since
		}
	}

	rec.Keeps = m.Spares(&rec)

	if rec.State == v1alpha1.GateClosed {
		m.Compared(&rec)
	} else if m.Record != nil {
		rec.Compared, rec.Differs, rec.Object = m.Record.Compared, m.Record.Differs, m.ObjectBefore()
	}

	out := Plan{Move: to, Policies: set, Allowances: noteWindows(m, now, given, &rec), Why: why}
	out.Record, out.Opens = rec, given.opensBy(&rec)

	if rec.State == v1alpha1.GateOpen {
		out.LeavesBehind = m.Behind(rec.Actions)
	}

	return out
}

func stay(m managed.Resource, why string) Plan {
	plan := Plan{Move: Stay, Policies: m.Current, Allowances: m.Allowances, Why: why}
	if m.Record != nil {
		plan.Record = *m.Record
	}

	return plan
}

// waiting leaves the gate open for what is missing, unless that takes too long.
func (p planning) waiting(missing managed.Lack) Plan {
	plan := stay(p.m, missing.Text)
	plan.Again, plan.Wait, plan.Broken = missing.Again, missing.Wait, missing.Broken

	t := p.m.Terms(p.limits)
	if t.MaxOpen <= 0 {
		return plan
	}

	left := t.MaxOpen - p.now.Sub(p.m.Record.Since.Time)

	switch {
	case left > 0 && (plan.Again == 0 || left < plan.Again):
		plan.Again = left
	case left <= 0 && t.CloseOverdue && !p.m.Record.Creating && !resource.Deleting(p.m.Object):
		plan = giveUp(p.m, p.now, p.given, "open for too long, and closed: "+missing.Text)
		plan.Wait, plan.Broken = missing.Wait, missing.Broken
	}

	plan.Overdue = left <= 0

	return plan
}

// open opens the gate for all that is pending, as far as one set can serve.
func (p planning) open() Plan {
	set, serves := opening(p.m, p.pending, nil)

	return p.unlessLanded(move(p.m, p.now, p.given, OpenUp, set, v1alpha1.GateRecord{
		State: v1alpha1.GateOpen, Actions: serves, Consumed: p.m.Consumed(), Allowances: taking(p.m, p.pending, serves), Existed: p.m.Existing(),
	}, askedBy(p.pending)))
}

// opening returns the set for some actions and all that is pending, and what it
// serves. A deletion waits for no update that has not landed: that may fail for as
// long as the resource is there, and changes nothing that is left after it.
func opening(m managed.Resource, pending []v1alpha1.Allowance, actions []string) (set, serves []string) {
	asked := slices.Concat(actions, managed.ActionsOf(pending))

	set, serves = management.Open(asked, m.Desired, m.LateInitialize)
	if slices.Contains(serves, management.ActionDelete) || !slices.ContainsFunc(pending, allowance.ByDeletion) {
		return set, serves
	}

	return management.Open([]string{management.ActionDelete}, m.Desired, m.LateInitialize)
}

// unlessLanded returns an opening, or the closing where what is allowed is
// there already: the set was open when the provider saw the change, and all
// that is new is the record.
func (p planning) unlessLanded(opening Plan) Plan {
	if !management.Same(p.m.Current, opening.Policies) {
		return opening
	}

	p.m.Record = &opening.Record
	if !p.m.Landed(p.limits, p.now).Nothing() {
		return opening
	}

	out := p.close("applied")
	out.By = managed.UnderWay(&opening.Record)

	return out
}

// shut plans the closed set though nothing has landed: no allowance is
// consumed.
func (p planning) shut(why string) Plan {
	rec := v1alpha1.GateRecord{State: v1alpha1.GateClosed, Existed: p.m.Existing() || p.m.Unknown()}

	if p.m.Record != nil {
		rec.Consumed, rec.Allowances = p.m.Record.Consumed, taking(p.m, p.pending, nil)

		if p.m.Record.State == v1alpha1.GateClosed {
			rec = *p.m.Record
		}
	}

	return move(p.m, p.now, p.given, CloseUp, p.m.ShutSet(), rec, why)
}

// giveUp plans the closed set for a while. A closed record with actions says
// what was given up on, and for which allowances.
func giveUp(m managed.Resource, now time.Time, given windowsGiven, why string) Plan {
	return move(m, now, given, CloseUp, m.ShutSet(), v1alpha1.GateRecord{
		State: v1alpha1.GateClosed, Actions: m.Record.Actions, Consumed: m.Record.Consumed, Allowances: m.Record.Allowances,
		Existed: m.Record.Existed,
	}, why)
}

// rest is how long a gate that was given up on stays closed still.
func rest(m managed.Resource, limits managed.Limits, now time.Time) time.Duration {
	if len(m.Record.Actions) == 0 {
		return 0
	}

	return max(0, m.Terms(limits).MaxOpen-now.Sub(m.Record.Since.Time))
}

// close plans the closed set now that what was open has landed. Allowances
// that have served go. One with an action that could not be served together
// with the others stays with the rest, and the gate opens for that.
func (p planning) close(why string) Plan {
	var left []v1alpha1.Allowance

	consumed, limit := p.m.Consumed(), int64(math.MaxInt64)

	for _, a := range p.m.Allowances {
		if !allowance.External(a) || managed.Foreign(a.Mutations) {
			left = append(left, a)

			continue
		}

		rest := notLanded(p.m, p.limits, p.now, a)
		if len(rest) > 0 {
			limit = min(limit, a.Generation-1)
		} else {
			consumed = max(consumed, a.Generation)
		}

		if a.Mutations = slices.Concat(rest, managed.ForeignOf(a.Mutations)); len(a.Mutations) > 0 {
			left = append(left, a)
		}
	}

	rec := &v1alpha1.GateRecord{
		State: v1alpha1.GateClosed, Unknown: p.m.Record.Unknown, Windows: p.m.Record.Windows,
		Existed: p.m.Existed(p.limits, p.now) || p.m.Record.Existed &&
			!slices.Contains(p.m.Record.Actions, management.ActionUpdate), Identity: p.m.LandedIdentity(),
	}

	for _, e := range p.m.Record.Allowances {
		if e.Mutations = landedOf(p.m, e); len(e.Mutations) > 0 {
			consumed = max(consumed, e.Generation)
			rec.Allowances = append(rec.Allowances, e)
		}
	}

	// Up to Consumed everything has served; above it the record remembers.
	consumed = max(p.m.Consumed(), min(consumed, limit))
	rec.Consumed = consumed
	rec.Allowances = slices.DeleteFunc(rec.Allowances, func(e v1alpha1.Allowance) bool { return e.Generation <= consumed })

	desired, _ := managed.Widest(p.m.Object, rec, p.m.Allowances) // It parsed before.
	next := planning{
		m: p.m, limits: p.limits, now: p.now, given: windowsGiven{windows: p.given.windows}, shared: p.shared.anew(), withhold: p.withhold,
	}
	next.m.Desired, next.m.Record, next.m.Allowances = desired, rec, left

	var out Plan

	if next.pending = next.unserved(); len(next.pending) > 0 {
		out = next.open()
	} else {
		next.m.Record = p.m.Record
		out = move(next.m, next.now, next.given, CloseUp, p.m.ShutSet(), *rec, why)
	}

	if left := p.m.Behind(p.m.Record.Actions); left != nil {
		out.LeavesBehind = left
	}

	return out
}

// askedBy says for a person who asked for an opening.
func askedBy(pending []v1alpha1.Allowance) string {
	if len(pending) == 0 {
		return "reverted"
	}

	return "allowed by " + Causes(pending)
}
