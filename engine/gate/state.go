// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func (p planning) plan() Plan {
	switch {
	case management.Audited(p.m.u) || p.m.ungated():
		return p.m.leaveUngated()
	case len(p.m.desired) == 0:
		return p.m.paused(p.now, p.given)
	case resource.Deleting(p.m.u):
		return p.whileDeleting()
	case p.m.record == nil:
		return p.firstSight()
	case p.m.record.State == v1alpha1.GateOpen:
		return p.whileOpen()
	default:
		return p.whileClosed()
	}
}

// unread plans while an annotation is not understood. Nothing opens then, and what is open is closed; what the annotations
// say stays, for a person to look at. Writable is true where record and allowances are understood, which a move writes.
func (p planning) unread(writable, recorded bool) Plan {
	const why = "waiting for a broken annotation to be corrected"

	ungated := recorded && p.m.record != nil && p.m.record.State == v1alpha1.GateUngated ||
		!recorded && strings.Contains(resource.Annotation(p.m.u, v1alpha1.AnnotationGate), string(v1alpha1.GateUngated))

	switch acting := len(management.Acting(p.m.current)) > 0; {
	case !acting, ungated, management.Audited(p.m.u), resource.Deleting(p.m.u):
		return p.m.stay(why)
	case writable && p.m.record != nil && p.m.record.State == v1alpha1.GateClosed:
		p.m.desired = p.m.current

		return p.shut("reverted")
	}

	plan := p.m.stay(why)
	plan.Move, plan.Policies, plan.Unread = CloseUp, p.m.shutSet(), true
	plan.Record = v1alpha1.GateRecord{V: v1alpha1.RecordVersion, State: v1alpha1.GateClosed}

	return plan
}

// paused pauses a resource whose Composition asked for nothing at all, not even
// to be observed. What its gate was open for it is open for again afterwards.
func (m managed) paused(now time.Time, given windowsGiven) Plan {
	const why = "paused by its Composition"

	if len(m.current) == 0 || resource.Deleting(m.u) {
		return m.stay(why)
	}

	rec := v1alpha1.GateRecord{State: v1alpha1.GateClosed}
	if m.record != nil {
		rec = *m.record
	}

	return m.move(now, given, CloseUp, []string{}, rec, why)
}

// firstSight takes over what the function, or whoever made the resource, left.
func (p planning) firstSight() Plan {
	asked := slices.DeleteFunc(management.Acting(p.m.current), func(a string) bool { return a == management.ActionDelete })
	if len(p.m.current) == 0 && slices.Contains(actionsOf(p.pending), management.ActionCreate) {
		asked = []string{management.ActionCreate} // It was made paused.
	}

	set, serves := management.Open(slices.Concat(asked, actionsOf(p.pending)), p.m.desired, p.m.late)

	switch {
	case len(serves) == 0:
		return p.takeOver()
	case len(asked) > 0 && !p.m.ready():
		return p.m.move(p.now, p.given, TakeOver, set, v1alpha1.GateRecord{
			State: v1alpha1.GateOpen, Actions: serves, Creating: true, Allowances: p.m.taking(p.pending, serves),
		}, untilReady)
	case len(p.pending) > 0:
		return p.open()
	default:
		return p.takeOver()
	}
}

// First is the first move of the gate of a managed resource that is about to be made with it open; nil where it is not, and
// where it is open for everything: nobody who knows of gates makes it so, and the API server refuses it.
func First(u *unstructured.Unstructured, lateInitialize bool, now time.Time) *Plan {
	if !management.Moved(resource.Strings(u.Object, "spec", "managementPolicies")) {
		return nil
	}

	// A copy may say that its external object was made: for another resource, which was there before.
	object, meta := maps.Clone(u.Object), maps.Clone(resource.Map(u.Object, "metadata"))
	meta["creationTimestamp"] = now.UTC().Add(time.Second).Format(time.RFC3339)
	object["metadata"] = meta

	delete(object, "status")

	plan, err := PlanFor(&unstructured.Unstructured{Object: object}, Options{LateInitialize: lateInitialize}, now)
	if err != nil || plan.Move != TakeOver || management.Audited(u) {
		return nil
	}

	plan.Record.Generation = 1

	return &plan
}

// Opening is the move of a closed gate that is to open with the change that it opens for: a managed resource as it is to be
// stored, but with the gate, the generation and the status that it has before. Nil where the gate stays, and where more
// than the resource says whether it moves, as before a deletion and where a window opened it, or something is to be recorded
// before, as of what stays behind.
func Opening(u *unstructured.Unstructured, lateInitialize bool, now time.Time) *Plan {
	rec, err := parseRecord(u)
	if err != nil || rec == nil || rec.State != v1alpha1.GateClosed || rec.Unacknowledged || len(rec.Actions) > 0 || len(rec.Windows) > 0 {
		return nil
	}

	plan, err := PlanFor(u, Options{LateInitialize: lateInitialize, WithholdDelete: true}, now)
	if err != nil || plan.Move != OpenUp || management.Same(plan.Policies, currentOf(u)) || resource.Deleting(u) || plan.LeavesBehind != nil {
		return nil
	}

	return &plan
}

// Opened is the move that opened the gate of a managed resource with the write of what it is open for, by what is planned
// next.
func Opened(u *unstructured.Unstructured, next *Plan) *Plan {
	rec, err := parseRecord(u)
	if err != nil || rec == nil {
		rec = &next.Record
	}

	out := &Plan{Move: OpenUp, Policies: currentOf(u), Record: *rec, By: next.By, Why: "allowed by " + Causes(next.By)}
	if rec.Creating {
		out.Move, out.Why = TakeOver, untilReady
	}

	return out
}

// untilReady says why the gate of a new resource is open.
const untilReady = "open until first ready"

// SameRecord reports whether two records are the same but for their times, and for what they took up.
func SameRecord(a, b *unstructured.Unstructured) bool {
	one, err := parseRecord(a)
	other, otherErr := parseRecord(b)

	return err == nil && otherErr == nil && one != nil && other != nil && one.State == other.State && one.Generation == other.Generation &&
		one.Creating == other.Creating && one.Unacknowledged == other.Unacknowledged && management.Same(one.Actions, other.Actions) &&
		one.Consumed == other.Consumed && one.Existed == other.Existed && one.Keeps == other.Keeps
}

// takeOver closes the gate of a resource that is there already. While all its
// provider ever saw was the default set, nothing reports whether it supports any
// other.
func (p planning) takeOver() Plan {
	plan := p.shut("taken over")
	plan.Record.Unacknowledged = management.Same(p.m.current, management.Order())

	return plan
}

// ready reports whether the resource was ready at its present generation.
func (m managed) ready() bool {
	r, ok := resource.ConditionOf(m.u, resource.ConditionReady)
	if !ok || !r.True() {
		return false
	}

	_, missing := m.synced(resource.Generation(m.u))

	return missing == ""
}

func (p planning) whileClosed() Plan {
	if p.m.record.Unacknowledged {
		return p.untilAcknowledged()
	}

	rest := p.m.rest(p.limits, p.now)

	_, serves := p.m.opening(p.pending, nil)
	if len(p.pending) > 0 && (rest == 0 || p.m.unrecorded(p.pending, serves)) {
		return p.open()
	}

	if !p.m.isShut() {
		return p.shut("reverted")
	}

	if len(p.given.over) > 0 {
		return p.shut(p.given.overText())
	}

	if len(p.pending) == 0 && p.m.differs() {
		return p.m.stay("closed until the changes made without Kausality are reverted or approved")
	}

	if fields := p.m.replaced(); len(p.pending) == 0 && len(fields) > 0 {
		return p.m.stay(p.m.waitsForReplacement(fields))
	}

	if len(p.pending) == 0 {
		if why := p.m.drifted(p.limits, p.now); why != "" {
			return p.m.stay(why)
		}
	}

	if len(p.pending) == 0 && p.shared.known() {
		return p.m.stay("closed: " + p.shared.text)
	}

	if len(p.pending) == 0 {
		return p.m.stay("closed")
	}

	plan := p.m.stay("closed after it was open for too long; a newer allowance opens it, or time does")
	plan.Again = rest

	return plan
}

// untilAcknowledged keeps the gate closed until the provider is known to support that.
func (p planning) untilAcknowledged() Plan {
	acknowledged, again := p.m.acknowledged(p.limits, p.now)

	switch {
	case acknowledged:
		rec := *p.m.record
		rec.Unacknowledged, p.m.record = false, &rec

		if plan := p.whileClosed(); plan.Move != Stay {
			return plan
		}

		return p.shut("taken over")
	case !p.m.isShut():
		return p.shut("reverted")
	default:
		plan := p.m.stay("waiting for the provider to observe the closed gate")
		plan.Again = again

		return plan
	}
}

// whileDeleting plans for a resource that has a deletion timestamp. Only Delete
// matters to its provider now, and it never closes again: a provider that may
// not delete orphans the external resource. No record, no opening: without an
// allowance for Delete the external resource stays.
func (p planning) whileDeleting() Plan {
	open := p.m.record != nil && p.m.record.State == v1alpha1.GateOpen && slices.Contains(p.m.record.Actions, management.ActionDelete)

	replaced := p.m.replaced()

	switch {
	case slices.Contains(p.m.desired, management.ActionDelete) && (open && p.shared.twinned() || !open && p.m.asksToDelete() && p.shared.is()):
		return p.keepShut("being deleted, and " + p.shared.text)
	case !slices.Contains(p.m.desired, management.ActionDelete):
		return p.keepShut("being deleted, and its external object is to be orphaned")
	case len(replaced) > 0:
		return p.keepShut("being deleted, and " + p.m.waitsForReplacement(replaced))
	case !open && !slices.Contains(actionsOf(p.pending), management.ActionDelete):
		return p.keepShut("being deleted, without recorded permission to delete its external object")
	case open:
		if set, _ := management.Open(p.m.record.Actions, p.m.desired, p.m.late); management.Same(set, p.m.current) {
			return p.waiting(lack{wait: WaitGone, text: missingGone})
		}
	}

	set, serves := management.Open([]string{management.ActionDelete}, p.m.desired, p.m.late)

	return p.m.move(p.now, p.given, OpenUp, set, v1alpha1.GateRecord{
		State: v1alpha1.GateOpen, Actions: serves, Consumed: p.m.consumed(), Allowances: p.m.taking(p.pending, serves),
	}, askedBy(p.pending))
}

// keepShut closes the gate of a resource being deleted, if it is not closed, or if its provider would wait for an external object that
// is gone.
func (p planning) keepShut(why string) Plan {
	if p.m.isShut() && (management.Same(p.m.current, p.m.shutSet()) || !saysGone(p.m.u, p.m.record)) {
		return p.m.stay(why)
	}

	return p.shut(why)
}

func (p planning) whileOpen() Plan {
	p = p.withoutUnused()

	if p.m.existed(p.limits, p.now) {
		return p.close("its external object existed before it: differences are applied once allowed")
	}

	actions := p.m.stillAllowed(p.pending)
	if len(actions)+len(p.pending) == 0 && len(p.given.over) > 0 {
		return p.shut(p.given.overText())
	}

	if fields := p.m.replaced(); len(actions)+len(p.pending) == 0 && len(fields) > 0 {
		return p.shut(p.m.waitsForReplacement(fields))
	}

	if len(actions)+len(p.pending) == 0 && p.m.asksToDelete() && p.shared.is() {
		return p.shut(p.shared.text)
	}

	if len(actions)+len(p.pending) == 0 {
		return p.shut("its deletion was cancelled")
	}

	set, serves := p.m.opening(p.pending, actions)
	if len(serves) == 0 {
		return p.close("its Composition does not compose it any more")
	}

	if !management.Same(serves, p.m.record.Actions) || !management.Same(set, p.m.current) || p.m.unrecorded(p.pending, serves) {
		return p.unlessLanded(p.m.move(p.now, p.given, OpenUp, set, v1alpha1.GateRecord{
			State: v1alpha1.GateOpen, Actions: serves, Consumed: p.m.consumed(),
			Creating: p.m.record.Creating, Allowances: p.m.taking(p.pending, serves), Existed: p.m.record.Existed,
		}, askedBy(p.pending)))
	}

	missing := p.m.landed(p.limits, p.now)
	if missing.nothing() {
		return p.close(p.m.applied(p.limits))
	}

	plan := p.waiting(missing)

	if _, again := p.m.lacksUpdate(p.limits, p.now); p.m.creating() && made(p.m.u) && again > 0 && (plan.Again == 0 || again < plan.Again) {
		plan.Again = again
	}

	return plan
}

// applied says that what was allowed is, and what of it the external object does not show.
func (m managed) applied(limits limits) string {
	if field := m.remains(limits); field != "" {
		return "applied, but the external object still shows " + field
	}

	return "applied"
}

// stillAllowed are the actions the gate is open for, without Delete where no
// deletion gave it, or that was withdrawn: other actions land soon, this one waits. Where the managed resource stands for
// another external object since, only what is pending is allowed.
func (m managed) stillAllowed(pending []v1alpha1.Allowance) []string {
	if len(m.replaced()) > 0 {
		return nil
	}

	if slices.Contains(actionsOf(pending), management.ActionDelete) {
		return m.record.Actions
	}

	return slices.DeleteFunc(slices.Clone(m.record.Actions), func(a string) bool { return a == management.ActionDelete })
}
