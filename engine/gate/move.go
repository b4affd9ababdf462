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
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// move plans a write. The generation it records is the one the write itself
// produces, and whatever has to last is counted from it.
func (p *planner) move(m Move, set []string, rec v1alpha1.GateRecord, why string) Plan {
	rec.V, rec.Generation = v1alpha1.RecordVersion, resource.Generation(p.u)
	if !Same(p.current, set) {
		rec.Generation++
	}

	rec.Since = metav1.NewTime(p.now.UTC().Truncate(time.Second))

	if rec.Identity == nil {
		rec.Identity = p.recognised()
	}

	if p.record != nil {
		rec.Unknown, rec.Keeps = p.record.Unknown, p.record.Keeps

		if p.record.State == v1alpha1.GateClosed && rec.State == v1alpha1.GateClosed {
			rec.Since = p.record.Since
		}
	}

	rec.Keeps = p.spares(&rec)

	if rec.State == v1alpha1.GateClosed {
		p.compared(&rec)
	} else if p.record != nil {
		rec.Compared, rec.Differs, rec.Object = p.record.Compared, p.record.Differs, p.objectBefore()
	}

	out := Plan{Move: m, Policies: set, Allowances: p.noteWindows(&rec), Why: why}
	out.Record, out.Opens = rec, p.opensBy(&rec)

	if rec.State == v1alpha1.GateOpen {
		out.LeavesBehind = p.behind(rec.Actions)
	}

	return out
}

func (p *planner) stay(why string) Plan {
	plan := Plan{Move: Stay, Policies: p.current, Allowances: p.allowances, Why: why}
	if p.record != nil {
		plan.Record = *p.record
	}

	return plan
}

// waiting leaves the gate open for what is missing, unless that takes too long.
func (p *planner) waiting(missing lack) Plan {
	plan := p.stay(missing.text)
	plan.Again, plan.Wait, plan.Broken = missing.again, missing.wait, missing.broken

	t := p.terms()
	if t.maxOpen <= 0 {
		return plan
	}

	left := t.maxOpen - p.now.Sub(p.record.Since.Time)

	switch {
	case left > 0 && (plan.Again == 0 || left < plan.Again):
		plan.Again = left
	case left <= 0 && t.closeOverdue && !p.record.Creating && !resource.Deleting(p.u):
		plan = p.giveUp("open for too long, and closed: " + missing.text)
		plan.Wait, plan.Broken = missing.wait, missing.broken
	}

	plan.Overdue = left <= 0

	return plan
}

// open opens the gate for all that is pending, as far as one set can serve.
func (p *planner) open() Plan {
	set, serves := p.opening(nil)

	return p.unlessLanded(p.move(OpenUp, set, v1alpha1.GateRecord{
		State: v1alpha1.GateOpen, Actions: serves, Consumed: p.consumed(), Allowances: p.taking(serves), Existed: p.existing(),
	}, p.askedBy()))
}

// opening returns the set for some actions and all that is pending, and what it
// serves. A deletion waits for no update that has not landed: that may fail for as
// long as the resource is there, and changes nothing that is left after it.
func (p *planner) opening(actions []string) (set, serves []string) {
	asked := slices.Concat(actions, actionsOf(p.pending))

	set, serves = Open(asked, p.desired, p.opts.LateInitialize)
	if slices.Contains(serves, ActionDelete) || !slices.ContainsFunc(p.pending, allowance.ByDeletion) {
		return set, serves
	}

	return Open([]string{ActionDelete}, p.desired, p.opts.LateInitialize)
}

// unlessLanded returns an opening, or the closing where what is allowed is
// there already: the set was open when the provider saw the change, and all
// that is new is the record.
func (p *planner) unlessLanded(opening Plan) Plan {
	if !Same(p.current, opening.Policies) {
		return opening
	}

	p.record = &opening.Record
	if !p.landed().nothing() {
		return opening
	}

	return p.close("applied")
}

// shut plans the closed set though nothing has landed: no allowance is
// consumed.
func (p *planner) shut(why string) Plan {
	rec := v1alpha1.GateRecord{State: v1alpha1.GateClosed, Existed: p.existing() || p.unknown()}

	if p.record != nil {
		rec.Consumed, rec.Allowances = p.record.Consumed, p.taking(nil)

		if p.record.State == v1alpha1.GateClosed {
			rec = *p.record
		}
	}

	return p.move(CloseUp, p.shutSet(), rec, why)
}

// giveUp plans the closed set for a while. A closed record with actions says
// what was given up on, and for which allowances.
func (p *planner) giveUp(why string) Plan {
	return p.move(CloseUp, p.shutSet(), v1alpha1.GateRecord{
		State: v1alpha1.GateClosed, Actions: p.record.Actions, Consumed: p.record.Consumed, Allowances: p.record.Allowances,
		Existed: p.record.Existed,
	}, why)
}

// rest is how long a gate that was given up on stays closed still.
func (p *planner) rest() time.Duration {
	if len(p.record.Actions) == 0 {
		return 0
	}

	return max(0, p.terms().maxOpen-p.now.Sub(p.record.Since.Time))
}

// close plans the closed set now that what was open has landed. Allowances
// that have served go. One with an action that could not be served together
// with the others stays with the rest, and the gate opens for that.
func (p *planner) close(why string) Plan {
	var left []v1alpha1.Allowance

	consumed, limit := p.consumed(), int64(math.MaxInt64)

	for _, a := range p.allowances {
		if !allowance.External(a) || foreign(a.Mutations) {
			left = append(left, a)

			continue
		}

		rest := p.notLanded(a)
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
		State: v1alpha1.GateClosed, Unknown: p.record.Unknown, Windows: p.record.Windows,
		Existed: p.existed() || p.record.Existed && !slices.Contains(p.record.Actions, ActionUpdate), Identity: p.landedIdentity(),
	}

	for _, e := range p.record.Allowances {
		if e.Mutations = p.landedOf(e); len(e.Mutations) > 0 {
			consumed = max(consumed, e.Generation)
			rec.Allowances = append(rec.Allowances, e)
		}
	}

	// Up to Consumed everything has served; above it the record remembers.
	consumed = max(p.consumed(), min(consumed, limit))
	rec.Consumed = consumed
	rec.Allowances = slices.DeleteFunc(rec.Allowances, func(e v1alpha1.Allowance) bool { return e.Generation <= consumed })

	desired, _ := within(p.u, rec, p.allowances) // It parsed before.
	next := (&view{u: p.u, opts: p.opts, now: p.now, desired: desired, current: p.current, record: rec, allowances: left}).planner()

	var out Plan

	if next.pending = next.unserved(); len(next.pending) > 0 {
		out = next.open()
	} else {
		next.record = p.record
		out = next.move(CloseUp, p.shutSet(), *rec, why)
	}

	if left := p.behind(p.record.Actions); left != nil {
		out.LeavesBehind = left
	}

	return out
}

// askedBy says for a person who asked for an opening.
func (p *planner) askedBy() string {
	if len(p.pending) == 0 {
		return "reverted"
	}

	return "allowed by " + Causes(p.pending)
}
