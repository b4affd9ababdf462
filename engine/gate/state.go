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
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func (p planning) plan() Plan {
	switch {
	case management.Audited(p.m.Object) || p.m.Ungated():
		return leaveUngated(p.m)
	case len(p.m.Desired) == 0:
		return paused(p.m, p.now, p.given)
	case resource.Deleting(p.m.Object):
		return p.whileDeleting()
	case p.m.Record == nil:
		return p.firstSight()
	case p.m.Record.State == v1alpha1.GateOpen:
		return p.whileOpen()
	default:
		return p.whileClosed()
	}
}

// unread plans while an annotation is not understood. Nothing opens then, and what is open is closed; what the annotations
// say stays, for a person to look at. Writable is true where record and allowances are understood, which a move writes.
func (p planning) unread(writable, recorded bool) Plan {
	const why = "waiting for a broken annotation to be corrected"

	ungated := recorded && p.m.Record != nil && p.m.Record.State == v1alpha1.GateUngated ||
		!recorded && strings.Contains(resource.Annotation(p.m.Object, v1alpha1.AnnotationGate), string(v1alpha1.GateUngated))

	switch acting := len(management.Acting(p.m.Current)) > 0; {
	case !acting, ungated, management.Audited(p.m.Object), resource.Deleting(p.m.Object):
		return stay(p.m, why)
	case writable && p.m.Record != nil && p.m.Record.State == v1alpha1.GateClosed:
		p.m.Desired = p.m.Current

		return p.shut("reverted")
	}

	plan := stay(p.m, why)
	plan.Move, plan.Policies, plan.Unread = CloseUp, p.m.ShutSet(), true
	plan.Record = v1alpha1.GateRecord{V: v1alpha1.RecordVersion, State: v1alpha1.GateClosed}

	return plan
}

// paused pauses a resource whose Composition asked for nothing at all, not even
// to be observed. What its gate was open for it is open for again afterwards.
func paused(m managed.Resource, now time.Time, given windowsGiven) Plan {
	const why = "paused by its Composition"

	if len(m.Current) == 0 || resource.Deleting(m.Object) {
		return stay(m, why)
	}

	rec := v1alpha1.GateRecord{State: v1alpha1.GateClosed}
	if m.Record != nil {
		rec = *m.Record
	}

	return move(m, now, given, CloseUp, []string{}, rec, why)
}

// firstSight takes over what the function, or whoever made the resource, left.
func (p planning) firstSight() Plan {
	asked := slices.DeleteFunc(management.Acting(p.m.Current), func(a string) bool { return a == management.ActionDelete })
	if len(p.m.Current) == 0 && slices.Contains(managed.ActionsOf(p.pending), management.ActionCreate) {
		asked = []string{management.ActionCreate} // It was made paused.
	}

	set, serves := management.Open(slices.Concat(asked, managed.ActionsOf(p.pending)), p.m.Desired, p.m.LateInitialize)

	switch {
	case len(serves) == 0:
		return p.takeOver()
	case len(asked) > 0 && !p.m.Ready():
		return move(p.m, p.now, p.given, TakeOver, set, v1alpha1.GateRecord{
			State: v1alpha1.GateOpen, Actions: serves, Creating: true, Allowances: taking(p.m, p.pending, serves),
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
	rec, err := managed.ParseRecord(u)
	if err != nil || rec == nil || rec.State != v1alpha1.GateClosed || rec.Unacknowledged || len(rec.Actions) > 0 || len(rec.Windows) > 0 {
		return nil
	}

	plan, err := PlanFor(u, Options{LateInitialize: lateInitialize, WithholdDelete: true}, now)
	if err != nil || plan.Move != OpenUp || management.Same(plan.Policies, managed.CurrentOf(u)) || resource.Deleting(u) ||
		plan.LeavesBehind != nil {
		return nil
	}

	return &plan
}

// Opened is the move that opened the gate of a managed resource with the write of what it is open for, by what is planned
// next.
func Opened(u *unstructured.Unstructured, next *Plan) *Plan {
	rec, err := managed.ParseRecord(u)
	if err != nil || rec == nil {
		rec = &next.Record
	}

	out := &Plan{Move: OpenUp, Policies: managed.CurrentOf(u), Record: *rec, By: next.By, Why: "allowed by " + Causes(next.By)}
	if rec.Creating {
		out.Move, out.Why = TakeOver, untilReady
	}

	return out
}

// untilReady says why the gate of a new resource is open.
const untilReady = "open until first ready"

// SameRecord reports whether two records say the same of state, generation, actions and marks. Their times, what they took up,
// windows, identity and drift do not count.
func SameRecord(a, b *unstructured.Unstructured) bool {
	one, err := managed.ParseRecord(a)
	other, otherErr := managed.ParseRecord(b)

	return err == nil && otherErr == nil && one != nil && other != nil && one.State == other.State && one.Generation == other.Generation &&
		one.Creating == other.Creating && one.Unacknowledged == other.Unacknowledged && management.Same(one.Actions, other.Actions) &&
		one.Consumed == other.Consumed && one.Existed == other.Existed && one.Keeps == other.Keeps
}

// takeOver closes the gate of a resource that is there already. While all its
// provider ever saw was the default set, nothing reports whether it supports any
// other.
func (p planning) takeOver() Plan {
	plan := p.shut("taken over")
	plan.Record.Unacknowledged = management.Same(p.m.Current, management.Order())

	return plan
}

func (p planning) whileClosed() Plan {
	if p.m.Record.Unacknowledged {
		return p.untilAcknowledged()
	}

	rest := rest(p.m, p.limits, p.now)

	_, serves := opening(p.m, p.pending, nil)
	if len(p.pending) > 0 && (rest == 0 || unrecorded(p.m, p.pending, serves)) {
		return p.open()
	}

	if !p.m.IsShut() {
		return p.shut("reverted")
	}

	if len(p.given.over) > 0 {
		return p.shut(p.given.overText())
	}

	if len(p.pending) == 0 && p.m.Differs() {
		return stay(p.m, "closed until the changes made without Kausality are reverted or approved")
	}

	if fields := p.m.Replaced(); len(p.pending) == 0 && len(fields) > 0 {
		return stay(p.m, p.m.WaitsForReplacement(fields))
	}

	if len(p.pending) == 0 {
		if why := p.m.Drifted(p.limits, p.now); why != "" {
			return stay(p.m, why)
		}
	}

	if len(p.pending) == 0 && p.shared.known() {
		return stay(p.m, "closed: "+p.shared.text)
	}

	if len(p.pending) == 0 {
		return stay(p.m, "closed")
	}

	plan := stay(p.m, "closed after it was open for too long; a newer allowance opens it, or time does")
	plan.Again = rest

	return plan
}

// untilAcknowledged keeps the gate closed until the provider is known to support that.
func (p planning) untilAcknowledged() Plan {
	acknowledged, again := acknowledged(p.m, p.limits, p.now)

	switch {
	case acknowledged:
		rec := *p.m.Record
		rec.Unacknowledged, p.m.Record = false, &rec

		if plan := p.whileClosed(); plan.Move != Stay {
			return plan
		}

		return p.shut("taken over")
	case !p.m.IsShut():
		return p.shut("reverted")
	default:
		plan := stay(p.m, "waiting for the provider to observe the closed gate")
		plan.Again = again

		return plan
	}
}

// whileDeleting plans for a resource that has a deletion timestamp. Only Delete
// matters to its provider now, and it never closes again: a provider that may
// not delete orphans the external resource. No record, no opening: without an
// allowance for Delete the external resource stays.
func (p planning) whileDeleting() Plan {
	open := p.m.Record != nil && p.m.Record.State == v1alpha1.GateOpen && slices.Contains(p.m.Record.Actions, management.ActionDelete)

	replaced := p.m.Replaced()

	switch {
	case slices.Contains(p.m.Desired, management.ActionDelete) && (open && p.shared.twinned() || !open && p.m.AsksToDelete() && p.shared.is()):
		return p.keepShut("being deleted, and " + p.shared.text)
	case !slices.Contains(p.m.Desired, management.ActionDelete):
		return p.keepShut("being deleted, and its external object is to be orphaned")
	case len(replaced) > 0:
		return p.keepShut("being deleted, and " + p.m.WaitsForReplacement(replaced))
	case !open && !slices.Contains(managed.ActionsOf(p.pending), management.ActionDelete):
		return p.keepShut("being deleted, without recorded permission to delete its external object")
	case open:
		if set, _ := management.Open(p.m.Record.Actions, p.m.Desired, p.m.LateInitialize); management.Same(set, p.m.Current) {
			return p.waiting(managed.Lack{Wait: managed.WaitGone, Text: managed.MissingGone})
		}
	}

	set, serves := management.Open([]string{management.ActionDelete}, p.m.Desired, p.m.LateInitialize)

	return move(p.m, p.now, p.given, OpenUp, set, v1alpha1.GateRecord{
		State: v1alpha1.GateOpen, Actions: serves, Consumed: p.m.Consumed(), Allowances: taking(p.m, p.pending, serves),
	}, askedBy(p.pending))
}

// keepShut closes the gate of a resource being deleted, if it is not closed, or if its provider would wait for an external object that
// is gone.
func (p planning) keepShut(why string) Plan {
	if p.m.IsShut() && (management.Same(p.m.Current, p.m.ShutSet()) || !managed.SaysGone(p.m.Object, p.m.Record)) {
		return stay(p.m, why)
	}

	return p.shut(why)
}

func (p planning) whileOpen() Plan {
	p = p.withoutUnused()

	if p.m.Existed(p.limits, p.now) {
		return p.close("its external object existed before it: differences are applied once allowed")
	}

	actions := stillAllowed(p.m, p.pending)
	if len(actions)+len(p.pending) == 0 && len(p.given.over) > 0 {
		return p.shut(p.given.overText())
	}

	if fields := p.m.Replaced(); len(actions)+len(p.pending) == 0 && len(fields) > 0 {
		return p.shut(p.m.WaitsForReplacement(fields))
	}

	if len(actions)+len(p.pending) == 0 && p.m.AsksToDelete() && p.shared.is() {
		return p.shut(p.shared.text)
	}

	if len(actions)+len(p.pending) == 0 {
		return p.shut("its deletion was cancelled")
	}

	set, serves := opening(p.m, p.pending, actions)
	if len(serves) == 0 {
		return p.close("its Composition does not compose it any more")
	}

	if !management.Same(serves, p.m.Record.Actions) || !management.Same(set, p.m.Current) || unrecorded(p.m, p.pending, serves) {
		return p.unlessLanded(move(p.m, p.now, p.given, OpenUp, set, v1alpha1.GateRecord{
			State: v1alpha1.GateOpen, Actions: serves, Consumed: p.m.Consumed(),
			Creating: p.m.Record.Creating, Allowances: taking(p.m, p.pending, serves), Existed: p.m.Record.Existed,
		}, askedBy(p.pending)))
	}

	missing := p.m.Landed(p.limits, p.now)
	if missing.Nothing() {
		return p.close(applied(p.m, p.limits))
	}

	plan := p.waiting(missing)

	if _, again := p.m.LacksUpdate(p.limits, p.now); p.m.Creating() && managed.Made(p.m.Object) && again > 0 && (plan.Again == 0 ||
		again < plan.Again) {
		plan.Again = again
	}

	return plan
}

// applied says that what was allowed is, and what of it the external object does not show.
func applied(m managed.Resource, limits managed.Limits) string {
	if field := m.Remains(limits); field != "" {
		return "applied, but the external object still shows " + field
	}

	return "applied"
}

// stillAllowed are the actions the gate is open for, without Delete where no
// deletion gave it, or that was withdrawn: other actions land soon, this one waits. Where the managed resource stands for
// another external object since, only what is pending is allowed.
func stillAllowed(m managed.Resource, pending []v1alpha1.Allowance) []string {
	if len(m.Replaced()) > 0 {
		return nil
	}

	if slices.Contains(managed.ActionsOf(pending), management.ActionDelete) {
		return m.Record.Actions
	}

	return slices.DeleteFunc(slices.Clone(m.Record.Actions), func(a string) bool { return a == management.ActionDelete })
}

// noteKeeps has a plan that writes nothing write the record where that does not say whether the external object is kept.
func noteKeeps(m managed.Resource, now time.Time, given windowsGiven, plan Plan) Plan {
	if plan.Move != Stay || m.Record == nil || m.Record.State == v1alpha1.GateUngated || resource.Deleting(m.Object) {
		return plan
	}

	spared := m.Record.Keeps && resource.Annotation(m.Object, v1alpha1.AnnotationRelease) == v1alpha1.ReleaseOrphan
	if m.Spares(m.Record) == spared {
		return plan
	}

	to := CloseUp
	if m.Record.State == v1alpha1.GateOpen {
		to = OpenUp
	}

	return move(m, now, given, to, m.Current, *m.Record, plan.Why)
}

// leaveUngated plans for a resource without a gate.
func leaveUngated(m managed.Resource) Plan {
	why := "not gated: its provider does not support management policies, and applies every change"
	unsupported := m.Record != nil && m.Record.State == v1alpha1.GateUngated && !m.Record.Audit
	rec := v1alpha1.GateRecord{V: v1alpha1.RecordVersion, State: v1alpha1.GateUngated, Audit: management.Audited(m.Object) && !unsupported}

	if rec.Audit {
		why = "not gated: its Composition runs the function in mode Audit, and every change is applied"
	}

	desired, _ := management.ParseDesired(m.Object) // It parsed before.

	asked := desired.Policies
	if asked == nil {
		asked = []string{management.ActionAll}
	}

	// To such a provider not even the list of all actions is the same as *.
	given := slices.Equal(asked, resource.Strings(m.Object.Object, "spec", "managementPolicies"))
	left := managed.Unopened(m.Allowances)

	if given && m.Record != nil && m.Record.State == v1alpha1.GateUngated && m.Record.Audit == rec.Audit && len(left) == len(m.Allowances) {
		return stay(m, why)
	}

	// The record has one text for each meaning: the API server compares texts.
	return Plan{Move: Ungate, Policies: asked, Record: rec, Allowances: left, Why: why}
}

// acknowledged reports whether the provider surely knows of the closed set: it has said
// anything of the generation that the closing made but that it does not support
// the like. If not, it says when time alone decides, of a provider that names
// no generations.
func acknowledged(m managed.Resource, limits managed.Limits, now time.Time) (acknowledged bool, again time.Duration) {
	c, ok := resource.ConditionOf(m.Object, resource.ConditionSynced)

	switch {
	case ok && c.Reason == managed.ReasonPaused:
		return false, 0 // It has not observed the set.
	case !ok || c.ObservedGeneration != 0:
		return ok && c.ObservedGeneration >= m.Record.Generation, 0
	default:
		again = max(0, limits.Settle-now.Sub(m.Record.Since.Time))

		return again == 0, again
	}
}
