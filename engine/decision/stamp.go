// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// stamp writes into the new object why it is as it is and what may follow.
func (d *decider) stamp() {
	generation := d.predictGeneration()
	entries := make([]v1alpha1.TraceEntry, 0, len(d.decision.Findings))

	var granted []v1alpha1.Allowance

	for _, f := range d.decision.Findings {
		if f.Verdict != Allowed {
			continue
		}

		if f.Rule == RuleLeftBehind {
			if f.Change.Field = leavingField(f.Change); slices.ContainsFunc(entries, func(e v1alpha1.TraceEntry) bool {
				return e.Field == f.Change.Field
			}) {
				continue
			}
		}

		hop, allowances := d.inject(d.New, f, generation)
		d.attest(f.cause.trace...)
		d.attest(hop)
		granted = allowance.Merge(granted, allowances)
		granted = allowance.Merge(granted, external(d.New, f, hop))
		entries = append(entries, v1alpha1.TraceEntry{
			Field: f.Change.Field, Generation: generation,
			Initiator: f.cause.initiator, Trace: allowance.ExtendTrace(f.cause.trace, hop),
		})
	}

	if d.Operation == OperationCreate {
		entries = d.creation(entries)
	}

	deletion, ended := d.judgeAnnounced()
	granted, entries = allowance.Merge(granted, deletion), append(entries, ended...)

	d.writeAllowances(granted)
	d.writeTrace(entries)
	d.writeHeld()
	d.writeAsked()
	d.writeEdits()
	d.startGate()

	if name, ok := usedUpgrade(d.decision.Findings); ok {
		annotate(d.New, v1alpha1.AnnotationLastUpgrade, name)
	}
}

// predictGeneration is the generation that the API server will give the new
// object: a mutating webhook runs before it is bumped.
func (d *decider) predictGeneration() int64 {
	if d.Old == nil {
		return 1
	}

	generation := resource.Generation(d.Old)

	for _, c := range d.changes {
		if (!c.Metadata() || bumpsGeneration(d.Old)) && !d.held(c) { // Our own annotations are changes too.
			return generation + 1
		}
	}

	return max(generation, 1)
}

// inject returns the hop of an object for a change of it, with everything
// captured, and the allowances that every matching policy adds because of it.
func (d *decider) inject(u *unstructured.Unstructured, f Finding, generation int64) (v1alpha1.Hop, []v1alpha1.Allowance) {
	if f.again {
		d.before = d.stood
		defer func() { d.before = nil }()
	}

	hop := v1alpha1.Hop{
		Kind: u.GetKind(), Name: resource.Name(u), Generation: generation, Request: d.request(generation), Field: f.Change.Field,
	}

	if f.cause.exception != "" {
		hop.Attestations = map[string]string{attestException: f.cause.exception}
	}

	all := hop

	var out []v1alpha1.Allowance

	until := d.until(hop)

	for _, p := range d.Policies.For(d.groupKind()) {
		if !p.Names(f.Change) || !d.mayInject(p, f) || !d.evaluate(p).Met {
			continue
		}

		own := hop
		own.Attestations = policy.MergeAttestations(p.Attestations(u.Object), hop.Attestations)
		all.Attestations = policy.MergeAttestations(all.Attestations, own.Attestations)
		trace := allowance.ExtendTrace(f.cause.trace, own)

		for _, perm := range p.Spec().Allow {
			out = expand(out, perm, v1alpha1.Allowance{
				Generation: generation, Initiator: f.cause.initiator, Policy: p.Name(), Trace: trace, Until: until,
			})
		}
	}

	return all, out
}

// attestException is the attestation of an exception: ENFORCEMENT/EXCEPTION and
// its reason.
const attestException = "exception"

// mayInject says whether a policy adds its allowances for an allowed change: a
// policy that lists who may start a chain adds them only for those, unless the
// change was itself caused from above.
func (d *decider) mayInject(p *policy.Policy, f Finding) bool {
	subjects := p.Spec().Subjects

	return f.cause.propagated || !policy.HasInitiators(subjects) || policy.MayInitiate(subjects, d.User)
}

// expand adds one allowance per mutation of a child, or one for all verbs of an
// external system.
func expand(out []v1alpha1.Allowance, perm v1alpha1.Permission, base v1alpha1.Allowance) []v1alpha1.Allowance {
	if perm.Relation == v1alpha1.RelationExternal {
		base.Relation, base.Mutations, base.Until = perm.Relation, perm.Mutations, nil

		return append(out, base)
	}

	base.APIGroup, base.Kind = perm.APIGroup, perm.Kind

	for _, m := range perm.Mutations {
		a := base
		if a.Mutation = m; m != v1alpha1.MutationCreate && m != v1alpha1.MutationDelete {
			a.Until = nil
		}

		out = append(out, a)
	}

	return out
}

// external returns what rides along with a change of an object, as its own
// allowances: of one that is no managed resource the actions of other systems.
func external(u *unstructured.Unstructured, f Finding, hop v1alpha1.Hop) []v1alpha1.Allowance {
	out := make([]v1alpha1.Allowance, 0, len(f.cause.external))

	for _, e := range f.cause.external {
		if !resource.IsManaged(u) {
			if e.Mutations = allowance.OfOtherSystems(e.Mutations); len(e.Mutations) == 0 {
				continue
			}
		}

		e.Generation, e.Initiator = hop.Generation, f.cause.initiator
		e.Trace = allowance.ExtendTrace(f.cause.trace, hop)
		out = append(out, e)
	}

	return out
}

// creation is the trace of a new object: one entry, with what any policy
// captured from it. A root's is the user who made it, where no policy says who
// may. One that nobody asked for has none.
func (d *decider) creation(entries []v1alpha1.TraceEntry) []v1alpha1.TraceEntry {
	made := d.decision.Findings[0]
	if made.Verdict == Unallowed {
		return nil
	}

	entry := v1alpha1.TraceEntry{Field: v1alpha1.MutationCreate, Generation: 1, Initiator: made.cause.initiator}
	if made.Verdict == Ungoverned {
		entry.Initiator = d.User.Name
	}

	hop := v1alpha1.Hop{Kind: d.New.GetKind(), Name: resource.Name(d.New), Generation: 1, Field: v1alpha1.MutationCreate}
	for _, e := range entries {
		hop.Attestations = policy.MergeAttestations(hop.Attestations, e.Trace[len(e.Trace)-1].Attestations)
	}

	entry.Trace = allowance.ExtendTrace(made.cause.trace, hop)

	return []v1alpha1.TraceEntry{entry}
}

// writeAllowances adds granted allowances to those the object carries, and
// takes away those that have served.
func (d *decider) writeAllowances(granted []v1alpha1.Allowance) {
	have, err := allowance.Parse(d.New)
	if err != nil {
		d.problem(inObject(d.New, err))
	}

	pruned := have
	if d.Old != nil && len(have) > 0 {
		pruned = slices.DeleteFunc(d.revoke(allowance.Unconsumed(d.Old, have)), d.calledOff)
	}

	if gate.Free(d.New) {
		pruned, granted = gate.Unopened(pruned), gate.Unopened(granted)
	}

	if len(granted) == 0 && len(pruned) == len(have) {
		return
	}

	value := allowance.FormatList(allowance.Merge(pruned, granted))
	if err := allowance.CheckSize(value); err != nil {
		d.decision.Refusal = inObject(d.New, err)
	}

	annotate(d.New, v1alpha1.AnnotationAllowances, value)
}

// revoke takes away allowances that an allowed change of a field gave, once an
// unallowed change of the same field is stored over it: what the controllers
// would carry on is no longer what was allowed.
func (d *decider) revoke(have []v1alpha1.Allowance) []v1alpha1.Allowance {
	if d.decision.Action == v1alpha1.ActionHold || d.gatekept() {
		return have // Nothing unallowed is stored, or it is put back.
	}

	return slices.DeleteFunc(have, func(a v1alpha1.Allowance) bool {
		if len(a.Trace) == 0 {
			return false
		}

		given := a.Trace[len(a.Trace)-1].Field

		return slices.ContainsFunc(d.decision.Findings, func(f Finding) bool {
			return f.Verdict == Unallowed && change.CoversText(given, f.Change.Path)
		})
	})
}

func (d *decider) writeTrace(entries []v1alpha1.TraceEntry) {
	if len(entries) == 0 {
		return
	}

	have, err := allowance.ParseTrace(d.New)
	if err != nil {
		d.problem(inObject(d.New, err))
	}

	annotate(d.New, v1alpha1.AnnotationTrace, allowance.FormatList(allowance.AddTrace(have, entries, d.usable()...)))
}
