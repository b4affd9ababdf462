// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// judge tries the rules in their order.
func (d *decider) judge(c change.Change) Finding {
	if f, ok := d.byBroken(c); ok {
		return f
	}

	for _, rule := range [...]func(*decider, change.Change) (Finding, bool){
		(*decider).byAllowance, (*decider).byUpgrade, (*decider).byInitiator, (*decider).byPhase, (*decider).byException,
		(*decider).byLeaving,
	} {
		if f, ok := rule(d, c); ok {
			f.Change, f.Verdict = c, Allowed
			f.Generation = d.sourceOf(f).Generation

			return d.waits(d.building(f))
		}
	}

	if d.root() && !d.governed(c) && !d.frees(c) && (!d.gatekept() || !counts(c)) {
		return Finding{Change: c, Verdict: Ungoverned}
	}

	return d.lacking(c, d.lacks(c))
}

// lacking is the finding on an unallowed change.
func (d *decider) lacking(c change.Change, lacks []Lack) Finding {
	for i := range lacks {
		lacks[i].Generation = d.lackingGeneration(lacks[i])
	}

	return Finding{Change: c, Verdict: Unallowed, Lacks: lacks, between: d.between()}
}

// root says whether the object has no parent. A namespace that goes is one only
// to who carries that out: for anybody else nothing is different.
func (d *decider) root() bool {
	return (d.Parent == nil || d.withNamespace && !exempt(d.User)) && !d.ParentGone
}

// governed says whether a policy is about a change of a root: one that says who
// may initiate it, or that nobody may. Deleting is governed where anything of
// the kind is.
func (d *decider) governed(c change.Change) bool {
	if d.Operation == OperationDelete && len(d.governing) > 0 {
		return true
	}

	return d.decidesWho(c) || d.unnamed(c) || d.Operation == OperationDelete && d.hasInitiators()
}

// decidesWho says whether a policy says who may initiate a change, or that nobody
// may.
func (d *decider) decidesWho(c change.Change) bool {
	return slices.ContainsFunc(d.Policies.For(d.groupKind()), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec().Subjects) && p.Names(c) || d.forbids(p, c)
	})
}

// forbids says whether a policy says that nobody may make a change: where it selects
// the object before or after, and its expressions hold or cannot be evaluated.
func (d *decider) forbids(p *policy.Policy, c change.Change) bool {
	if !p.Forbids() || !p.Names(c) || !p.MaySelect(d.input()) {
		return false
	}

	v := d.evaluate(p)

	return v.Met || v.Problem != nil || v.Lack == policy.LackSelector
}

// hasInitiators says whether a policy says who may initiate changes of objects of
// the kind.
func (d *decider) hasInitiators() bool {
	return slices.ContainsFunc(d.Policies.For(d.groupKind()), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec().Subjects)
	})
}

// unnamed says whether a change is of a field of a root of which no policy says
// who may initiate it, though one does of others. Where every Enforcement that is
// about the object leaves such fields alone, none is.
func (d *decider) unnamed(c change.Change) bool {
	if d.Operation != OperationUpdate || c.Metadata() || !d.root() || d.carriesOut() || d.decidesWho(c) {
		return false
	}

	if len(d.governing) > 0 && !slices.ContainsFunc(d.governing, func(e *enforcement.Enforcement) bool { return !e.IgnoresUnnamed() }) {
		return false
	}

	return d.hasInitiators()
}

// byAllowance looks for an unconsumed allowance of the parent that covers the
// change and that the user may exercise. The trace is of the first by granting
// hop; what rides along is of all of them.
func (d *decider) byAllowance(c change.Change) (Finding, bool) {
	var (
		best     *v1alpha1.Allowance
		external []v1alpha1.Allowance
	)

	for i := range d.parentAllowances {
		a := &d.parentAllowances[i]
		if !allowance.Covers(*a, d.groupKind(), c) || d.premature(*a) || d.consumed(*a, c) || !d.mayExercise(*a, c) {
			continue
		}

		external = allowance.Merge(external, d.ridingAlong(*a))

		if best == nil || compareRank(*a, *best) < 0 {
			best = a
		}
	}

	if best == nil {
		return Finding{}, false
	}

	return Finding{Rule: RuleAllowance, Policy: best.Policy, cause: cause{
		initiator: best.Initiator, trace: d.moved(best.Trace), external: external, propagated: true,
	}}, true
}

// consumed says whether an allowance of the parent has served, as far as this
// change of this child is concerned.
func (d *decider) consumed(a v1alpha1.Allowance, c change.Change) bool {
	if d.ParentSettles {
		return allowance.Settled(d.Parent, a)
	}

	// A deletion is asked about again once what it gives is recorded.
	return allowance.Consumed(d.Parent, a) ||
		!allowance.ByDeletion(a) && allowance.ByUse(d.Parent, a) && d.usedUp(a, c)
}

// trace is the old object's; what does not parse names nothing, and is reported
// when it is written.
func (d *decider) trace() []v1alpha1.TraceEntry {
	if d.Old == nil {
		return nil
	}

	entries, _ := allowance.ParseTrace(d.Old)

	return entries
}

// compareRank orders candidates by {kind}/{name}/{field} of the granting hop,
// then by policy.
func compareRank(a, b v1alpha1.Allowance) int {
	x, y := v1alpha1.Hop{}, v1alpha1.Hop{}
	if n := len(a.Trace); n > 0 {
		x = a.Trace[n-1]
	}

	if n := len(b.Trace); n > 0 {
		y = b.Trace[n-1]
	}

	return cmp.Or(
		strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name), strings.Compare(x.Field, y.Field),
		strings.Compare(a.Policy, b.Policy), strings.Compare(a.Mutation, b.Mutation),
	)
}

// mayExercise says whether the user is among those whom the granting policy
// lets make the mutation, as it is now. Of a policy that is not in force, or that
// would no longer give the allowance, nobody is; where the allowance names none,
// anybody. Who deletes for others may always.
func (d *decider) mayExercise(a v1alpha1.Allowance, c change.Change) bool {
	if a.Policy == "" || d.Operation == OperationDelete && exempt(d.User) {
		return true
	}

	p := d.Policies.ByName(a.Policy)

	return p != nil && d.stillGives(p, a, c) && policy.MayExercise(p.Spec().Subjects, d.User)
}

// stillGives says whether a policy as it is now would give an allowance that it
// gave, as far as a change is concerned.
func (d *decider) stillGives(p *policy.Policy, a v1alpha1.Allowance, c change.Change) bool {
	field := allowance.GrantingField(a)

	return p.Allows(d.groupKind(), c) && (field == "" || p.About(d.Parent.GroupVersionKind().GroupKind(), field))
}

// ridingAlong returns the parent's External entries of the same policy and
// generation, as far as the policy allows those actions now.
func (d *decider) ridingAlong(a v1alpha1.Allowance) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, e := range d.parentAllowances {
		if allowance.External(e) && e.Policy == a.Policy && allowance.SameRequest(e, a) {
			if p := d.Policies.ByName(e.Policy); p != nil {
				if e.Mutations = p.External(e.Mutations); len(e.Mutations) == 0 {
					continue
				}
			}

			out = append(out, e)
		}
	}

	return out
}

// byInitiator looks for a policy about the object's own kind that lets the
// user start a chain.
func (d *decider) byInitiator(c change.Change) (Finding, bool) {
	for _, p := range d.Policies.For(d.groupKind()) {
		if p.Names(c) && policy.MayInitiate(p.Spec().Subjects, d.User) && d.evaluate(p).Met {
			return Finding{Rule: RuleInitiate, Policy: p.Name(), cause: cause{initiator: d.User.Name}}, true
		}
	}

	return Finding{}, false
}

// byPhase allows what a parent does before it was ever ready, and the deletion
// of what it leaves behind.
func (d *decider) byPhase(change.Change) (Finding, bool) {
	switch {
	case d.Operation == OperationDelete:
		return d.byDeletion()
	case d.Parent == nil || resource.Deleting(d.Parent) || d.adopted():
		return Finding{}, false
	case !resource.SeenReady(d.Parent) && d.builds():
		f := Finding{Rule: RuleInitializing, cause: d.implicit(v1alpha1.MutationCreate)}
		f.cause.external = implicitExternal()

		return f, true
	default:
		return Finding{}, false
	}
}

// byDeletion allows deleting what a deleted parent leaves behind: a managed
// resource only where a grant to delete its external resource is recorded, or
// that would stay.
func (d *decider) byDeletion() (Finding, bool) {
	switch {
	case resource.Deleting(d.Old) && !resource.IsManaged(d.Old):
		return Finding{Rule: RuleDeleting, cause: cause{initiator: d.User.Name}}, true // Its end was let begin.
	case d.root() || !d.ParentGone && !resource.Deleting(d.Parent) || d.staysInNamespace():
		return Finding{}, false
	case !resource.IsManaged(d.Old):
		return Finding{Rule: RuleDeleting, cause: d.implicit(v1alpha1.MutationDelete)}, true
	}

	if a, ok := d.deletionGrant(); ok {
		return Finding{Rule: RuleDeleting, Policy: a.Policy, cause: cause{
			initiator: a.Initiator, trace: withoutLast(a.Trace), propagated: true,
		}}, true
	}

	if gate.Orphans(d.Old) {
		return Finding{Rule: RuleDeleting, cause: d.implicit(v1alpha1.MutationDelete)}, true
	}

	return Finding{}, false
}

func withoutLast(trace []v1alpha1.Hop) []v1alpha1.Hop { return trace[:max(0, len(trace)-1)] }

// byException looks for an exception of each Enforcement that governs the
// object: what one of them excepts, another may still forbid. Where it is not
// sure which do, there is none.
func (d *decider) byException(c change.Change) (Finding, bool) {
	var first string

	if d.unsure {
		return Finding{}, false
	}

	for _, e := range d.governing {
		x := e.Exception(d.User, c, d.Now)
		if x == nil {
			return Finding{}, false
		}

		if name := e.Name() + "/" + x.Name; first == "" || name < first {
			first = name
		}
	}

	if first == "" {
		return Finding{}, false
	}

	return Finding{Rule: RuleException, Policy: first, cause: cause{initiator: d.User.Name, exception: d.exceptionReason(first)}}, true
}

// exceptionReason is what an exception gives as its reason.
func (d *decider) exceptionReason(name string) string {
	for _, e := range d.governing {
		for _, x := range e.Spec().Exceptions {
			if e.Name()+"/"+x.Name == name {
				return name + ": " + x.Reason
			}
		}
	}

	return name
}

// implicit is the cause of what follows from a parent's own creation or
// deletion: that entry of its trace, or else the newest. What a deletion whose
// parent left no trace is due to, the user who makes it must tell.
func (d *decider) implicit(field string) cause {
	out := cause{initiator: d.User.Name, propagated: true}
	if d.Parent == nil {
		return out
	}

	entries, err := allowance.ParseTrace(d.Parent)
	if err != nil {
		d.problem(inObject(d.Parent, err))
	}

	i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == field })
	if i < 0 && field == v1alpha1.MutationCreate && len(entries) > 0 {
		i = 0
	}

	if i >= 0 {
		out.initiator, out.trace = entries[i].Initiator, d.moved(entries[i].Trace)

		return out
	}

	out.trace = d.moved([]v1alpha1.Hop{{
		Kind: d.Parent.GetKind(), Name: resource.Name(d.Parent),
		Generation: resource.Generation(d.Parent), Field: field,
	}})

	return out
}

// moved is a path of the parent as the object carries it.
func (d *decider) moved(trace []v1alpha1.Hop) []v1alpha1.Hop {
	return allowance.MoveTrace(trace, resource.String(d.Parent.Object, "metadata", "namespace"),
		resource.String(d.subject().Object, "metadata", "namespace"))
}
