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
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func (p *planner) plan() Plan {
	switch {
	case Audited(p.u) || p.ungated():
		return p.leaveUngated()
	case len(p.desired) == 0:
		return p.paused()
	case resource.Deleting(p.u):
		return p.whileDeleting()
	case p.record == nil:
		return p.firstSight()
	case p.record.State == v1alpha1.GateOpen:
		return p.whileOpen()
	default:
		return p.whileClosed()
	}
}

// unread plans while an annotation is not understood. Nothing opens then, and what is open is closed; what the annotations
// say stays, for a person to look at. Writable is true where record and allowances are understood, which a move writes.
func (p *planner) unread(writable, recorded bool) Plan {
	const why = "waiting for a broken annotation to be corrected"

	ungated := recorded && p.record != nil && p.record.State == v1alpha1.GateUngated ||
		!recorded && strings.Contains(resource.Annotation(p.u, v1alpha1.AnnotationGate), string(v1alpha1.GateUngated))

	switch acting := len(Acting(p.current)) > 0; {
	case !acting, ungated, Audited(p.u), resource.Deleting(p.u):
		return p.stay(why)
	case writable && p.record != nil && p.record.State == v1alpha1.GateClosed:
		p.desired = p.current

		return p.shut("reverted")
	}

	plan := p.stay(why)
	plan.Move, plan.Policies, plan.Unread = CloseUp, p.shutSet(), true
	plan.Record = v1alpha1.GateRecord{V: v1alpha1.RecordVersion, State: v1alpha1.GateClosed}

	return plan
}

// paused pauses a resource whose Composition asked for nothing at all, not even
// to be observed. What its gate was open for it is open for again afterwards.
func (p *planner) paused() Plan {
	const why = "paused by its Composition"

	if len(p.current) == 0 || resource.Deleting(p.u) {
		return p.stay(why)
	}

	rec := v1alpha1.GateRecord{State: v1alpha1.GateClosed}
	if p.record != nil {
		rec = *p.record
	}

	return p.move(CloseUp, []string{}, rec, why)
}

// firstSight takes over what the function, or whoever made the resource, left.
func (p *planner) firstSight() Plan {
	asked := slices.DeleteFunc(Acting(p.current), func(a string) bool { return a == ActionDelete })
	if len(p.current) == 0 && slices.Contains(actionsOf(p.pending), ActionCreate) {
		asked = []string{ActionCreate} // It was made paused.
	}

	set, serves := Open(slices.Concat(asked, actionsOf(p.pending)), p.desired, p.opts.LateInitialize)

	switch {
	case len(serves) == 0:
		return p.takeOver()
	case len(asked) > 0 && !p.ready():
		return p.move(TakeOver, set, v1alpha1.GateRecord{
			State: v1alpha1.GateOpen, Actions: serves, Creating: true, Allowances: p.taking(serves),
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
	if !Moved(resource.Strings(u.Object, "spec", "managementPolicies")) {
		return nil
	}

	// A copy may say that its external object was made: for another resource, which was there before.
	object, meta := maps.Clone(u.Object), maps.Clone(resource.Map(u.Object, "metadata"))
	meta["creationTimestamp"] = now.UTC().Add(time.Second).Format(time.RFC3339)
	object["metadata"] = meta

	delete(object, "status")

	plan, err := PlanFor(&unstructured.Unstructured{Object: object}, Options{LateInitialize: lateInitialize}, now)
	if err != nil || plan.Move != TakeOver || Audited(u) {
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
	if err != nil || plan.Move != OpenUp || Same(plan.Policies, currentOf(u)) || resource.Deleting(u) || plan.LeavesBehind != nil {
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
		one.Creating == other.Creating && one.Unacknowledged == other.Unacknowledged && Same(one.Actions, other.Actions) &&
		one.Consumed == other.Consumed && one.Existed == other.Existed && one.Keeps == other.Keeps
}

// takeOver closes the gate of a resource that is there already. While all its
// provider ever saw was the default set, nothing reports whether it supports any
// other.
func (p *planner) takeOver() Plan {
	plan := p.shut("taken over")
	plan.Record.Unacknowledged = Same(p.current, order())

	return plan
}

// ready reports whether the resource was ready at its present generation.
func (o observing) ready() bool {
	r, ok := resource.ConditionOf(o.u, resource.ConditionReady)
	if !ok || !r.True() {
		return false
	}

	_, missing := o.synced(resource.Generation(o.u))

	return missing == ""
}

func (p *planner) whileClosed() Plan {
	if p.record.Unacknowledged {
		return p.untilAcknowledged()
	}

	rest := p.rest()

	_, serves := p.opening(nil)
	if len(p.pending) > 0 && (rest == 0 || p.unrecorded(serves)) {
		return p.open()
	}

	if !p.isShut() {
		return p.shut("reverted")
	}

	if len(p.over) > 0 {
		return p.shut(p.overText())
	}

	if len(p.pending) == 0 && p.differs() {
		return p.stay("closed until the changes made without Kausality are reverted or approved")
	}

	if fields := p.replaced(); len(p.pending) == 0 && len(fields) > 0 {
		return p.stay(p.waitsForReplacement(fields))
	}

	if len(p.pending) == 0 {
		if why := p.drifted(); why != "" {
			return p.stay(why)
		}
	}

	if len(p.pending) == 0 && p.shared != nil && p.shared.is() {
		return p.stay("closed: " + p.shared.text)
	}

	if len(p.pending) == 0 {
		return p.stay("closed")
	}

	plan := p.stay("closed after it was open for too long; a newer allowance opens it, or time does")
	plan.Again = rest

	return plan
}

// untilAcknowledged keeps the gate closed until the provider is known to support that.
func (p *planner) untilAcknowledged() Plan {
	acknowledged, again := p.acknowledged()

	switch {
	case acknowledged:
		rec := *p.record
		rec.Unacknowledged, p.record = false, &rec

		if plan := p.whileClosed(); plan.Move != Stay {
			return plan
		}

		return p.shut("taken over")
	case !p.isShut():
		return p.shut("reverted")
	default:
		plan := p.stay("waiting for the provider to observe the closed gate")
		plan.Again = again

		return plan
	}
}

// whileDeleting plans for a resource that has a deletion timestamp. Only Delete
// matters to its provider now, and it never closes again: a provider that may
// not delete orphans the external resource. No record, no opening: without an
// allowance for Delete the external resource stays.
func (p *planner) whileDeleting() Plan {
	open := p.record != nil && p.record.State == v1alpha1.GateOpen && slices.Contains(p.record.Actions, ActionDelete)

	replaced := p.replaced()

	switch {
	case slices.Contains(p.desired, ActionDelete) && (open && p.twinned() || !open && p.asksToDelete() && p.sharing()):
		return p.keepShut("being deleted, and " + p.shared.text)
	case !slices.Contains(p.desired, ActionDelete):
		return p.keepShut("being deleted, and its external object is to be orphaned")
	case len(replaced) > 0:
		return p.keepShut("being deleted, and " + p.waitsForReplacement(replaced))
	case !open && !slices.Contains(actionsOf(p.pending), ActionDelete):
		return p.keepShut("being deleted, without recorded permission to delete its external object")
	case open:
		if set, _ := Open(p.record.Actions, p.desired, p.opts.LateInitialize); Same(set, p.current) {
			return p.waiting(lack{wait: WaitGone, text: missingGone})
		}
	}

	set, serves := Open([]string{ActionDelete}, p.desired, p.opts.LateInitialize)

	return p.move(OpenUp, set, v1alpha1.GateRecord{
		State: v1alpha1.GateOpen, Actions: serves, Consumed: p.consumed(), Allowances: p.taking(serves),
	}, p.askedBy())
}

// keepShut closes the gate of a resource being deleted, if it is not closed, or if its provider would wait for an external object that
// is gone.
func (p *planner) keepShut(why string) Plan {
	if p.isShut() && (Same(p.current, p.shutSet()) || !saysGone(p.u, p.record)) {
		return p.stay(why)
	}

	return p.shut(why)
}

func (p *planner) whileOpen() Plan {
	p.dropUnused()

	if p.existed() {
		return p.close("its external object existed before it: differences are applied once allowed")
	}

	actions := p.stillAllowed()
	if len(actions)+len(p.pending) == 0 && len(p.over) > 0 {
		return p.shut(p.overText())
	}

	if fields := p.replaced(); len(actions)+len(p.pending) == 0 && len(fields) > 0 {
		return p.shut(p.waitsForReplacement(fields))
	}

	if len(actions)+len(p.pending) == 0 && p.asksToDelete() && p.sharing() {
		return p.shut(p.shared.text)
	}

	if len(actions)+len(p.pending) == 0 {
		return p.shut("its deletion was cancelled")
	}

	set, serves := p.opening(actions)
	if len(serves) == 0 {
		return p.close("its Composition does not compose it any more")
	}

	if !Same(serves, p.record.Actions) || !Same(set, p.current) || p.unrecorded(serves) {
		return p.unlessLanded(p.move(OpenUp, set, v1alpha1.GateRecord{
			State: v1alpha1.GateOpen, Actions: serves, Consumed: p.consumed(),
			Creating: p.record.Creating, Allowances: p.taking(serves), Existed: p.record.Existed,
		}, p.askedBy()))
	}

	missing := p.landed()
	if missing.nothing() {
		return p.close(p.applied())
	}

	plan := p.waiting(missing)

	if _, again := p.lacksUpdate(); p.creating() && made(p.u) && again > 0 && (plan.Again == 0 || again < plan.Again) {
		plan.Again = again
	}

	return plan
}

// applied says that what was allowed is, and what of it the external object does not show.
func (p *planner) applied() string {
	if field := p.remains(); field != "" {
		return "applied, but the external object still shows " + field
	}

	return "applied"
}

// stillAllowed are the actions the gate is open for, without Delete where no
// deletion gave it, or that was withdrawn: other actions land soon, this one waits. Where the managed resource stands for
// another external object since, only what is pending is allowed.
func (p *planner) stillAllowed() []string {
	if len(p.replaced()) > 0 {
		return nil
	}

	if slices.Contains(actionsOf(p.pending), ActionDelete) {
		return p.record.Actions
	}

	return slices.DeleteFunc(slices.Clone(p.record.Actions), func(a string) bool { return a == ActionDelete })
}
