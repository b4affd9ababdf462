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
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// move plans a write. The generation it records is the one the write itself
// produces, and whatever has to last is counted from it.
func (m managed) move(now time.Time, given windowsGiven, to Move, set []string, rec v1alpha1.GateRecord, why string) Plan {
	rec.V, rec.Generation = v1alpha1.RecordVersion, resource.Generation(m.u)
	if !management.Same(m.current, set) {
		rec.Generation++
	}

	rec.Since = metav1.NewTime(now.UTC().Truncate(time.Second))

	if rec.Identity == nil {
		rec.Identity = m.recognised()
	}

	if m.record != nil {
		rec.Unknown, rec.Keeps = m.record.Unknown, m.record.Keeps

		if m.record.State == v1alpha1.GateClosed && rec.State == v1alpha1.GateClosed {
			rec.Since = m.record.Since
		}
	}

	rec.Keeps = m.spares(&rec)

	if rec.State == v1alpha1.GateClosed {
		m.compared(&rec)
	} else if m.record != nil {
		rec.Compared, rec.Differs, rec.Object = m.record.Compared, m.record.Differs, m.objectBefore()
	}

	out := Plan{Move: to, Policies: set, Allowances: m.noteWindows(now, given, &rec), Why: why}
	out.Record, out.Opens = rec, given.opensBy(&rec)

	if rec.State == v1alpha1.GateOpen {
		out.LeavesBehind = m.behind(rec.Actions)
	}

	return out
}

func (m managed) stay(why string) Plan {
	plan := Plan{Move: Stay, Policies: m.current, Allowances: m.allowances, Why: why}
	if m.record != nil {
		plan.Record = *m.record
	}

	return plan
}

// waiting leaves the gate open for what is missing, unless that takes too long.
func (p planning) waiting(missing lack) Plan {
	plan := p.m.stay(missing.text)
	plan.Again, plan.Wait, plan.Broken = missing.again, missing.wait, missing.broken

	t := p.m.terms(p.limits)
	if t.maxOpen <= 0 {
		return plan
	}

	left := t.maxOpen - p.now.Sub(p.m.record.Since.Time)

	switch {
	case left > 0 && (plan.Again == 0 || left < plan.Again):
		plan.Again = left
	case left <= 0 && t.closeOverdue && !p.m.record.Creating && !resource.Deleting(p.m.u):
		plan = p.m.giveUp(p.now, p.given, "open for too long, and closed: "+missing.text)
		plan.Wait, plan.Broken = missing.wait, missing.broken
	}

	plan.Overdue = left <= 0

	return plan
}

// open opens the gate for all that is pending, as far as one set can serve.
func (p planning) open() Plan {
	set, serves := p.m.opening(p.pending, nil)

	return p.unlessLanded(p.m.move(p.now, p.given, OpenUp, set, v1alpha1.GateRecord{
		State: v1alpha1.GateOpen, Actions: serves, Consumed: p.m.consumed(), Allowances: p.m.taking(p.pending, serves), Existed: p.m.existing(),
	}, askedBy(p.pending)))
}

// opening returns the set for some actions and all that is pending, and what it
// serves. A deletion waits for no update that has not landed: that may fail for as
// long as the resource is there, and changes nothing that is left after it.
func (m managed) opening(pending []v1alpha1.Allowance, actions []string) (set, serves []string) {
	asked := slices.Concat(actions, actionsOf(pending))

	set, serves = management.Open(asked, m.desired, m.late)
	if slices.Contains(serves, management.ActionDelete) || !slices.ContainsFunc(pending, allowance.ByDeletion) {
		return set, serves
	}

	return management.Open([]string{management.ActionDelete}, m.desired, m.late)
}

// unlessLanded returns an opening, or the closing where what is allowed is
// there already: the set was open when the provider saw the change, and all
// that is new is the record.
func (p planning) unlessLanded(opening Plan) Plan {
	if !management.Same(p.m.current, opening.Policies) {
		return opening
	}

	p.m.record = &opening.Record
	if !p.m.landed(p.limits, p.now).nothing() {
		return opening
	}

	out := p.close("applied")
	out.By = underWay(&opening.Record)

	return out
}

// shut plans the closed set though nothing has landed: no allowance is
// consumed.
func (p planning) shut(why string) Plan {
	rec := v1alpha1.GateRecord{State: v1alpha1.GateClosed, Existed: p.m.existing() || p.m.unknown()}

	if p.m.record != nil {
		rec.Consumed, rec.Allowances = p.m.record.Consumed, p.m.taking(p.pending, nil)

		if p.m.record.State == v1alpha1.GateClosed {
			rec = *p.m.record
		}
	}

	return p.m.move(p.now, p.given, CloseUp, p.m.shutSet(), rec, why)
}

// giveUp plans the closed set for a while. A closed record with actions says
// what was given up on, and for which allowances.
func (m managed) giveUp(now time.Time, given windowsGiven, why string) Plan {
	return m.move(now, given, CloseUp, m.shutSet(), v1alpha1.GateRecord{
		State: v1alpha1.GateClosed, Actions: m.record.Actions, Consumed: m.record.Consumed, Allowances: m.record.Allowances,
		Existed: m.record.Existed,
	}, why)
}

// rest is how long a gate that was given up on stays closed still.
func (m managed) rest(limits limits, now time.Time) time.Duration {
	if len(m.record.Actions) == 0 {
		return 0
	}

	return max(0, m.terms(limits).maxOpen-now.Sub(m.record.Since.Time))
}

// close plans the closed set now that what was open has landed. Allowances
// that have served go. One with an action that could not be served together
// with the others stays with the rest, and the gate opens for that.
func (p planning) close(why string) Plan {
	var left []v1alpha1.Allowance

	consumed, limit := p.m.consumed(), int64(math.MaxInt64)

	for _, a := range p.m.allowances {
		if !allowance.External(a) || foreign(a.Mutations) {
			left = append(left, a)

			continue
		}

		rest := p.m.notLanded(p.limits, p.now, a)
		if len(rest) > 0 {
			limit = min(limit, a.Generation-1)
		} else {
			consumed = max(consumed, a.Generation)
		}

		if a.Mutations = slices.Concat(rest, foreignOf(a.Mutations)); len(a.Mutations) > 0 {
			left = append(left, a)
		}
	}

	rec := &v1alpha1.GateRecord{
		State: v1alpha1.GateClosed, Unknown: p.m.record.Unknown, Windows: p.m.record.Windows,
		Existed: p.m.existed(p.limits, p.now) || p.m.record.Existed &&
			!slices.Contains(p.m.record.Actions, management.ActionUpdate), Identity: p.m.landedIdentity(),
	}

	for _, e := range p.m.record.Allowances {
		if e.Mutations = p.m.landedOf(e); len(e.Mutations) > 0 {
			consumed = max(consumed, e.Generation)
			rec.Allowances = append(rec.Allowances, e)
		}
	}

	// Up to Consumed everything has served; above it the record remembers.
	consumed = max(p.m.consumed(), min(consumed, limit))
	rec.Consumed = consumed
	rec.Allowances = slices.DeleteFunc(rec.Allowances, func(e v1alpha1.Allowance) bool { return e.Generation <= consumed })

	desired, _ := within(p.m.u, rec, p.m.allowances) // It parsed before.
	next := planning{
		m: p.m, limits: p.limits, now: p.now, given: windowsGiven{windows: p.given.windows}, shared: p.shared.anew(), withhold: p.withhold,
	}
	next.m.desired, next.m.record, next.m.allowances = desired, rec, left

	var out Plan

	if next.pending = next.unserved(); len(next.pending) > 0 {
		out = next.open()
	} else {
		next.m.record = p.m.record
		out = next.m.move(next.now, next.given, CloseUp, p.m.shutSet(), *rec, why)
	}

	if left := p.m.behind(p.m.record.Actions); left != nil {
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
