// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Decide says what may be applied of one desired composed resource. The
// request and its objects are not modified.
func Decide(req Request) Result {
	// 1. What is known of it.
	r, asker := composedOf(&req), askerOf(&req)

	// 2. What becomes of it.
	out := r.decide(&req, asker)

	// 3. What is recorded of that.
	r.stampMode(out.Desired)
	stampWithheld(&out)
	stampRepairs(&out)
	r.leaveToGate(out.Desired)

	return out
}

func (r composed) decide(req *Request, asker *asker) Result {
	switch {
	case req.GatedIn != "" && r.Desired != nil && r.mode != v1alpha1.ModeAudit:
		return r.withoutGate(req.GatedIn)
	case req.Other != nil && (r.Observed == nil || r.Desired == nil):
		return r.renamed(asker, req.Other, req.Room)
	case r.Observed == nil:
		return r.create(asker, req.Room)
	case r.Desired == nil:
		return r.remove(asker)
	case r.Observed.GroupVersionKind().GroupKind() != r.Desired.GroupVersionKind().GroupKind():
		return r.swap(asker, req.Other, req.Room)
	default:
		return r.update(asker, req.Baseline, req.Room)
	}
}

// ask puts a change of the resource to the engine.
func (r composed) ask(asker *asker, op request.Operation, old, obj *unstructured.Unstructured) decision.Decision {
	req := r.asking(asker, op, old, obj)
	d := decision.Decide(req)

	if asker.asked != nil && decides(&d) {
		asker.asked(&req, &d)
	}

	return d
}

// decides reports whether there was anything to decide.
func decides(d *decision.Decision) bool { return len(d.Findings)+len(d.Held)+len(d.Kept) > 0 }

// asking is a change of the resource, as a request.
func (r composed) asking(asker *asker, op request.Operation, old, obj *unstructured.Unstructured) request.Request {
	action := v1alpha1.ActionHold
	if r.mode == v1alpha1.ModeAudit {
		action = v1alpha1.ActionAudit
	}

	return request.Request{
		Operation: op, Old: old, New: obj, User: asker.user, Parent: r.XR, ParentSettles: true, Namespace: asker.namespace,
		Basis: asker.basis, Action: action, ComposedResource: r.Name, Successor: asker.successor, Ungated: asker.ungated,
		Resource: asker.resources.Of(cmp.Or(old, obj).GroupVersionKind().GroupKind()),
		Repairs:  r.repairs(), RepairsNow: r.repair(), Withheld: asker.withheld, Listed: asker.listed, UnknownCause: unknownCause(r.XR),
		Edited: func() []string { return condition.EditedSince(r.XR) },
	}
}

// create lets a new resource through with the initial set of policies, or
// leaves it out.
func (r composed) create(asker *asker, room int) Result {
	obj := writable(r.Desired)
	prepareCreate(obj, r.XR)

	d := r.ask(asker, request.OperationCreate, nil, obj)
	out := Result{Problems: d.Problems, Held: r.wholeHeld(obj, d, v1alpha1.MutationCreate)}.of(&d, r.unmade(obj))

	if len(out.Held) > 0 && r.mode != v1alpha1.ModeAudit {
		return out
	}

	if len(out.Repaired) > 0 {
		r.createAgain(&out)
	} else {
		out.Pending = condition.Describe(obj) + " is being created"
	}

	out.Desired = withSpec(d.Object)
	dropPrepared(out.Desired, r.Desired)
	encodeSecret(out.Desired)

	if resource.IsManaged(out.Desired) && !asker.ungated && r.mode != v1alpha1.ModeAudit {
		want := wanted(r.Desired)
		recordWanted(out.Desired, want)
		late := !asker.basis.Settings.WithoutLateInitialize.Has(out.Desired.GroupVersionKind().GroupKind())
		setPolicies(out.Desired, management.Initial(want, late))
	}

	out.Problems = append(out.Problems, r.record(room, out.Desired, wish.RecordOf(out.Desired.Object))...)

	return out
}

// withSpec returns an object with a spec of its own: the decided one shares it with what was
// asked for.
func withSpec(u *unstructured.Unstructured) *unstructured.Unstructured {
	object := maps.Clone(u.Object)
	if spec := resource.Map(object, "spec"); spec != nil {
		object["spec"] = maps.Clone(spec)
	}

	return &unstructured.Unstructured{Object: object}
}

// update applies what is allowed and keeps the rest as observed.
func (r composed) update(asker *asker, baseline bool, room int) Result {
	if out, ok := r.unchanged(asker, room); ok {
		return out
	}

	return r.compared(asker, baseline, room)
}

// desired returns the wish as it is compared, and the record of the last one.
func (r composed) desired() (*unstructured.Unstructured, *wish.Record, error) {
	desired := writable(r.Desired)
	r.carry(desired)
	encodeSecret(desired)

	last, err := wish.Parse(r.Observed)
	if desired.GetAPIVersion() != r.Observed.GetAPIVersion() {
		last = nil
	}

	return desired, last, err
}

// compared applies what is allowed of a wish, compared with what is stored.
func (r composed) compared(asker *asker, baseline bool, room int) Result {
	fields, err := managedfields.Of(r.Observed, r.manager)
	if err != nil {
		return r.unreadable(err)
	}

	asked, merged, err := r.merged(baseline, fields)

	d := r.ask(asker, request.OperationUpdate, r.Observed, merged)
	out := Result{Problems: d.Problems, Held: r.heldOf(d, merged), Baseline: asked.Baseline, Delegated: asked.Delegated}
	out = out.of(&d, condition.Describe(r.Observed))

	if err != nil {
		out.Problems = append(out.Problems, inObserved(r.Observed, err))
	}

	out.Repairs = r.repairsAfter(&d, merged)
	r.answer(room, &out, asked, d, fields)
	r.addState(&out, d)

	return out
}

// merged is a wish as it is compared with what is stored, and what applying it makes of that. The error
// is of the record of the last wish.
func (r composed) merged(baseline bool, fields managedfields.Fields) (*wish.Comparison, *unstructured.Unstructured, error) {
	desired, last, err := r.desired()

	asked := wish.Compare(wish.Input{
		Wish: desired, Stored: r.Observed, Fields: fields, Record: last,
		Baseline: baseline && !secret(r.Observed) && !request.Older(r.Observed, r.XR), Delegated: r.delegated(),
	})

	merged := &unstructured.Unstructured{Object: managedfields.Merge(r.Observed.Object, asked.Object, fields)}
	addRendered(merged, r.Observed)

	return asked, merged, err
}

// unchanged applies a wish that is as it was and is stored, as nearly all of a run are; false
// where it may not be so, or where there is anything to decide.
func (r composed) unchanged(asker *asker, room int) (Result, bool) {
	desired, last, err := r.desired()

	applied := managedfields.AppliedBy(r.Observed, r.manager)
	if err != nil || last == nil || !wish.Unchanged(desired, r.Observed, last, applied, rendered) {
		return Result{}, false
	}

	merged := &unstructured.Unstructured{Object: maps.Clone(r.Observed.Object)}
	carryAnnotations(merged, desired, resource.Map(applied, "f:metadata", "f:annotations"))

	d := decision.Decide(r.asking(asker, request.OperationUpdate, r.Observed, merged))
	if decides(&d) {
		return Result{}, false
	}

	out := Result{Problems: d.Problems}.of(&d, condition.Describe(r.Observed))
	out.Desired = desired

	if d.Action == v1alpha1.ActionHold {
		keepRendered(out.Desired, r.Observed, resource.Map(applied, "f:metadata"))
	}

	stampOn(out.Desired, d.Object)
	out.Problems = append(out.Problems, r.keepRecord(room, out.Desired, last)...)
	out.Repairs = r.repairsAfter(&d, merged)
	r.addState(&out, d)

	return out, true
}

// addState adds what is held and pending whatever is wished now.
func (r composed) addState(out *Result, d decision.Decision) {
	out.Held = append(out.Held, r.heldOutside()...)

	out.Pending = r.pending(d)
	if out.Pending == "" && r.allowsHeld(d.Findings) {
		out.Pending = condition.Describe(r.Observed) + " is blocked by a held change"
	}
}

// answer makes what is applied out of what was decided on an update.
func (r composed) answer(room int, out *Result, asked *wish.Comparison, d decision.Decision, fields managedfields.Fields) {
	result := d.Object.Object
	if d.Action != v1alpha1.ActionHold {
		result = asked.Object // Nothing is held.
	}

	if d.Action == v1alpha1.ActionHold && len(out.Held) > 0 && r.Desired.GetAPIVersion() != r.Observed.GetAPIVersion() {
		out.Desired, out.Kept = r.hold(fields), true // A part cannot be in another version.
		stampOn(out.Desired, d.Object)

		return
	}

	object, record := asked.Answer(result)
	out.Desired = &unstructured.Unstructured{Object: object}
	stampOn(out.Desired, d.Object)
	out.Problems = append(out.Problems, r.record(room, out.Desired, record)...)

	if d.Action == v1alpha1.ActionHold && len(out.Held)+len(out.Repaired) > 0 {
		r.asSeen(out.Desired) // What is held, or repaired, is so as of now.
	}
}

// heldOf is what is held of an update.
func (r composed) heldOf(d decision.Decision, merged *unstructured.Unstructured) []condition.Held {
	var out []condition.Held

	var repairs func(map[string]any, change.Change) bool
	if !d.Allowed() && r.mends() {
		repairs = r.repairs()
	}

	for _, f := range d.Findings {
		if f.Verdict == finding.Unallowed {
			h, own := r.unrepaired(merged, f, repairs)
			is := condition.Held{
				Resource: condition.Describe(r.Observed), Change: r.listed(h, f.Approvable()),
				Passed: r.mode == v1alpha1.ModeAudit, Policies: f.Policies(),
			}

			if !own {
				is.Why, is.Briefly, is.OfEdit = f.Why(), f.Briefly(), f.OfEdit()
			}

			out = append(out, is)
		}
	}

	return out
}

// allowsHeld reports whether an allowance of the XR, not used up, is for a change
// that is held all the same: the policy that gave it is not in force, or does
// not let Crossplane exercise it. It must be there when that is fixed.
func (r composed) allowsHeld(findings []finding.Finding) bool {
	if len(findings) == 0 {
		return false
	}

	list, err := allowance.Parse(r.XR)
	if err != nil {
		return false // Reported with the decision.
	}

	kind := r.Observed.GroupVersionKind().GroupKind()
	approved := unused(r.XR, list)

	return slices.ContainsFunc(findings, func(f finding.Finding) bool {
		return f.Verdict == finding.Unallowed && (len(approved) > 0 && approved[f.Approvable().Digest] ||
			slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool {
				return !allowance.OfApproval(a) && !f.Bars(a) && allowance.Covers(a, kind, f.Change) && !allowance.Settled(r.XR, a)
			}))
	})
}

// unused are the digests of changes that approvals have allowed, as far as these are not used up.
func unused(xr *unstructured.Unstructured, list []v1alpha1.Allowance) map[string]bool {
	if !slices.ContainsFunc(list, allowance.OfApproval) {
		return nil
	}

	out, reported := map[string]bool{}, input.ReadReported(xr)

	for _, a := range list {
		if allowance.OfApproval(a) && !reported.Used(a) {
			out[a.Digest] = true
		}
	}

	return out
}

// remove deletes what may be deleted. A managed resource is first kept with the
// allowance to delete its external resource stamped on it, and dropped once
// its gate is open for that; deleted earlier it would orphan it.
func (r composed) remove(asker *asker) Result {
	fields, err := managedfields.Of(r.Observed, r.manager)
	if err != nil {
		return r.unreadable(err)
	}

	d := r.ask(asker, request.OperationDelete, r.Observed, nil)
	out := Result{Problems: d.Problems, Held: r.wholeHeld(r.Observed, d, v1alpha1.MutationDelete)}.of(&d, condition.Describe(r.Observed))

	if len(out.Held) > 0 && r.mode != v1alpha1.ModeAudit {
		out.Kept, out.Desired = true, r.hold(fields)

		return out
	}

	if !gated(r.Observed) || gate.MayDelete(r.Observed) {
		out.Pending = condition.Describe(r.Observed) + " is being deleted"

		return out
	}

	out.Kept, out.Desired = true, keep(r.Observed, fields)
	out.Pending = condition.Describe(r.Observed) + " waits for its gate to open for Delete"

	stampOn(out.Desired, cmp.Or(d.Object, r.Observed))

	return out
}

// kept is a resource that stays as it is, by [composed.hold].
func (r composed) kept() Result {
	fields, err := managedfields.Of(r.Observed, r.manager)
	if err != nil {
		return r.unreadable(err)
	}

	return Result{Kept: true, Desired: r.hold(fields)}
}

// unreadable keeps a resource of which nobody can know what Crossplane applies. What
// it leaves out it would take away: so it hands out all that is there.
func (r composed) unreadable(err error) Result {
	return Result{
		Desired: r.whole(), Kept: true, Problems: []error{err},
		Held: []condition.Held{r.heldAsIs(v1alpha1.HeldChange{Field: "metadata.managedFields", Missing: err.Error()})},
	}
}

// pending says what of allowed changes is under way. It says the same from the
// first write to the last: an XR's condition is watched, and Crossplane stops
// to listen where an XR changes too often.
func (r composed) pending(d decision.Decision) string {
	observed := r.Observed
	changing := condition.Describe(observed) + " is being changed"

	for _, f := range d.Findings {
		if f.Verdict == finding.Allowed && f.Rule != finding.RuleRepair {
			return changing
		}
	}

	if gated(observed) {
		if r.switches() || gate.Pending(observed) {
			return changing
		}

		return ""
	}

	if !caughtUp(observed) {
		return changing
	}

	return ""
}

// caughtUp reports whether the controller of a composed resource, such as another
// XR, has seen its generation, and the last request that changed no generation; kinds that do not report that always have.
func caughtUp(u *unstructured.Unstructured) bool {
	if p, reports := resource.ProgressOf(u); reports {
		generation := resource.Generation(u)

		return p.Settled.Generation >= generation && p.Settled.Request >= allowance.LastRequest(u, generation)
	}

	seen := resource.ObservedGeneration(u)

	return seen == 0 || seen >= resource.Generation(u)
}
