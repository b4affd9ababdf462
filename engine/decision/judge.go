// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// judge tries the rules in their order.
func (d *decider) judge(c change.Change) Finding {
	for _, rule := range []func(change.Change) (Finding, bool){
		d.byAllowance, d.byUpgrade, d.byInitiator, d.byPhase,
	} {
		if f, ok := rule(c); ok {
			f.Change, f.Verdict = c, Allowed

			return f
		}
	}

	if d.root() && !d.governed(c) {
		return Finding{Change: c, Verdict: Ungoverned}
	}

	return Finding{Change: c, Verdict: Unallowed, Missing: d.missing(c)}
}

// partOfCreation allows the fields of a new object for the reason its creation
// is allowed: who may make it may fill it in.
func (d *decider) partOfCreation(f Finding) Finding {
	if d.Operation != OperationCreate || f.Verdict != Unallowed || len(d.decision.Findings) == 0 {
		return f
	}

	made := d.decision.Findings[0]
	if made.Verdict != Allowed {
		return f
	}

	made.Change = f.Change

	return made
}

// root says whether the object has no parent.
func (d *decider) root() bool { return d.Parent == nil && !d.ParentGone }

// governed says whether a policy is about a change of a root.
func (d *decider) governed(c change.Change) bool {
	return slices.ContainsFunc(d.Policies.For(d.groupKind()), func(p *policy.Policy) bool {
		return p.Names(c) && policy.HasInitiators(p.Spec().Subjects)
	})
}

// byAllowance looks for an unconsumed allowance of the parent that covers the
// change and that the user may exercise.
func (d *decider) byAllowance(c change.Change) (Finding, bool) {
	if d.Parent == nil {
		return Finding{}, false
	}

	var found []v1alpha1.Allowance

	for _, a := range d.parentAllowances {
		if allowance.Covers(a, d.groupKind(), c) && !d.consumed(a) && d.mayExercise(a) {
			found = append(found, a)
		}
	}

	if len(found) == 0 {
		return Finding{}, false
	}

	a := slices.MinFunc(found, func(x, y v1alpha1.Allowance) int { return strings.Compare(rank(x), rank(y)) })

	return Finding{Rule: RuleAllowance, Policy: a.Policy, cause: cause{
		initiator:  a.Initiator,
		trace:      a.Trace,
		external:   d.ridingAlong(a),
		propagated: true,
	}}, true
}

// consumed says whether an allowance of the parent has served.
func (d *decider) consumed(a v1alpha1.Allowance) bool {
	if d.ParentSettles {
		settled, _ := resource.SettledGeneration(d.Parent)

		return settled >= a.Generation
	}

	return allowance.Consumed(d.Parent, a)
}

// rank orders candidates by {kind}/{name}/{field} of the granting hop, then by
// policy.
func rank(a v1alpha1.Allowance) string {
	hop := v1alpha1.Hop{}
	if n := len(a.Trace); n > 0 {
		hop = a.Trace[n-1]
	}

	return strings.Join([]string{hop.Kind, hop.Name, hop.Field}, "/") + "\x00" + a.Policy + "\x00" + a.Mutation
}

// mayExercise says whether the user is among those whom the granting policy
// lets make the mutation.
func (d *decider) mayExercise(a v1alpha1.Allowance) bool {
	p := d.Policies.ByName(a.Policy)

	return p == nil || policy.MayExercise(p.Spec().Subjects, d.User)
}

// ridingAlong returns the parent's External entries of the same policy and
// generation.
func (d *decider) ridingAlong(a v1alpha1.Allowance) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, e := range d.parentAllowances {
		if allowance.External(e) && e.Policy == a.Policy && e.Generation == a.Generation {
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
	case d.Operation == OperationDelete && (d.ParentGone || d.Parent != nil && resource.Deleting(d.Parent)):
		return Finding{Rule: RuleDeleting, cause: d.implicit()}, true
	case d.Parent == nil || d.Operation == OperationDelete || resource.Deleting(d.Parent):
		return Finding{}, false
	case !resource.SeenReady(d.Parent) && d.User.Machine(): // Controllers build up children, people do not.
		f := Finding{Rule: RuleInitializing, cause: d.implicit()}
		f.cause.external = []v1alpha1.Allowance{{
			Relation: v1alpha1.RelationExternal, Mutations: []string{gate.ActionCreate, gate.ActionUpdate},
		}}

		return f, true
	default:
		return Finding{}, false
	}
}

// implicit is the cause of what follows from a parent's own existence: the
// newest entry of its trace, a creation if there is one.
func (d *decider) implicit() cause {
	out := cause{initiator: d.User.Name, propagated: true}
	if d.Parent == nil {
		return out
	}

	entries, err := allowance.ParseTrace(d.Parent)
	if err != nil {
		d.problem(inObject(d.Parent, err))
	}

	if len(entries) == 0 {
		out.trace = []v1alpha1.Hop{{
			Kind: d.Parent.GetKind(), Name: resource.Name(d.Parent),
			Generation: resource.Generation(d.Parent), Field: v1alpha1.MutationCreate,
		}}

		return out
	}

	e := entries[0]
	if i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == v1alpha1.MutationCreate }); i >= 0 {
		e = entries[i]
	}

	out.initiator, out.trace = e.Initiator, e.Trace

	return out
}
