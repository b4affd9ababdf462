// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// stamp writes into the new object why it is as it is and what may follow.
func (d *decider) stamp() {
	generation := d.predictGeneration()

	var (
		granted []v1alpha1.Allowance
		entries []v1alpha1.TraceEntry
	)

	for _, f := range d.decision.Findings {
		if f.Verdict != Allowed {
			continue
		}

		hop, allowances := d.inject(f, generation)
		granted = allowance.Merge(granted, allowances)
		granted = allowance.Merge(granted, d.external(f, hop))

		if d.Operation == OperationUpdate {
			entries = append(entries, v1alpha1.TraceEntry{
				Field: f.Change.Field, Generation: generation,
				Initiator: f.cause.initiator, Trace: allowance.ExtendTrace(f.cause.trace, hop),
			})
		}
	}

	if d.Operation == OperationCreate {
		entries = d.creation(generation)
	}

	d.writeAllowances(granted)
	d.writeTrace(entries)
	d.writeHeld()

	if name, ok := usedUpgrade(d.decision.Findings); ok {
		d.annotate(v1alpha1.AnnotationLastUpgrade, name)
	}
}

// predictGeneration is the generation that the API server will give the new
// object: a mutating webhook runs before it is bumped.
func (d *decider) predictGeneration() int64 {
	if d.Old == nil {
		return 1
	}

	generation := resource.Generation(d.Old)

	for _, c := range change.Between(d.Old.Object, d.New.Object) {
		if !c.Metadata() || bumpsGeneration(d.Old) { // Our own annotations are changes too.
			return generation + 1
		}
	}

	return generation
}

// inject returns the object's own hop for a change, with everything captured,
// and the allowances that every matching policy adds because of it.
func (d *decider) inject(f Finding, generation int64) (v1alpha1.Hop, []v1alpha1.Allowance) {
	hop := v1alpha1.Hop{
		Kind: d.New.GetKind(), Name: resource.Name(d.New), Generation: generation, Field: f.Change.Field,
	}

	all := hop

	var out []v1alpha1.Allowance

	for _, p := range d.Policies.For(d.groupKind()) {
		if !p.Names(f.Change) || !d.mayInject(p, f) || !d.evaluate(p).Met {
			continue
		}

		hop.Attestations = p.Attestations(d.New.Object)
		all.Attestations = policy.MergeAttestations(all.Attestations, hop.Attestations)
		trace := allowance.ExtendTrace(f.cause.trace, hop)

		for _, perm := range p.Spec().Allow {
			out = append(out, expand(perm, v1alpha1.Allowance{
				Generation: generation, Initiator: f.cause.initiator, Policy: p.Name(), Trace: trace,
			})...)
		}
	}

	return all, out
}

// mayInject says whether a policy adds its allowances for an allowed change: a
// policy that lists who may start a chain adds them only for those, unless the
// change was itself caused from above.
func (d *decider) mayInject(p *policy.Policy, f Finding) bool {
	subjects := p.Spec().Subjects

	return f.cause.propagated || !policy.HasInitiators(subjects) || policy.MayInitiate(subjects, d.User)
}

// expand makes one allowance per mutation of a child, and one for all verbs of
// an external system.
func expand(perm v1alpha1.Permission, base v1alpha1.Allowance) []v1alpha1.Allowance {
	if perm.Relation == v1alpha1.RelationExternal {
		base.Relation, base.Mutations = perm.Relation, perm.Mutations

		return []v1alpha1.Allowance{base}
	}

	out := make([]v1alpha1.Allowance, 0, len(perm.Mutations))

	for _, m := range perm.Mutations {
		a := base
		a.APIGroup, a.Kind, a.Mutation = perm.APIGroup, perm.Kind, m
		out = append(out, a)
	}

	return out
}

// external returns what rides along with a change of a managed resource, as
// the resource's own allowances.
func (d *decider) external(f Finding, hop v1alpha1.Hop) []v1alpha1.Allowance {
	if !resource.IsManaged(d.New) {
		return nil
	}

	out := make([]v1alpha1.Allowance, 0, len(f.cause.external))

	for _, e := range f.cause.external {
		e.Generation, e.Initiator = hop.Generation, f.cause.initiator
		e.Trace = allowance.ExtendTrace(f.cause.trace, hop)
		out = append(out, e)
	}

	return out
}

// creation is the trace of a new object: one entry, with what any policy
// captured from it. A root's is the user who made it.
func (d *decider) creation(generation int64) []v1alpha1.TraceEntry {
	made := cause{initiator: d.User.Name}
	hop := v1alpha1.Hop{
		Kind: d.New.GetKind(), Name: resource.Name(d.New), Generation: generation, Field: v1alpha1.MutationCreate,
	}

	for _, f := range d.decision.Findings {
		if f.Verdict != Allowed {
			continue
		}

		if f.Change.Field == v1alpha1.MutationCreate {
			made = f.cause
		}

		own, _ := d.inject(f, generation)
		hop.Attestations = policy.MergeAttestations(hop.Attestations, own.Attestations)
	}

	return []v1alpha1.TraceEntry{{
		Field: v1alpha1.MutationCreate, Generation: generation,
		Initiator: made.initiator, Trace: allowance.ExtendTrace(made.trace, hop),
	}}
}

// writeAllowances adds granted allowances to those the object carries, and
// takes away those that have served.
func (d *decider) writeAllowances(granted []v1alpha1.Allowance) {
	have, err := allowance.Parse(d.New)
	if err != nil {
		d.problem(inObject(d.New, err))
	}

	had := resource.Annotation(d.New, v1alpha1.AnnotationAllowances) != ""
	if !had && len(granted) == 0 {
		return
	}

	if d.Old != nil && err == nil {
		pruned := d.revoke(allowance.Unconsumed(d.Old, have))
		if len(pruned) == len(have) && len(granted) == 0 {
			return
		}

		have = pruned
	}

	value := allowance.FormatList(allowance.Merge(have, granted))
	if err := allowance.CheckSize(value); err != nil {
		d.decision.Refusal = inObject(d.New, err)
	}

	d.annotate(v1alpha1.AnnotationAllowances, value)
}

// revoke takes away allowances that an allowed change of a field gave, once an
// unallowed change of the same field is stored over it: what the controllers
// would carry on is no longer what was allowed.
func (d *decider) revoke(have []v1alpha1.Allowance) []v1alpha1.Allowance {
	if d.decision.Action == v1alpha1.ActionHold {
		return have // Nothing unallowed is stored.
	}

	return slices.DeleteFunc(have, func(a v1alpha1.Allowance) bool {
		if len(a.Trace) == 0 {
			return false
		}

		given, err := change.ParsePattern(a.Trace[len(a.Trace)-1].Field)

		return err == nil && slices.ContainsFunc(d.decision.Findings, func(f Finding) bool {
			return f.Verdict == Unallowed && given.Covers(f.Change.Path)
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

	d.annotate(v1alpha1.AnnotationTrace, allowance.FormatList(allowance.AddTrace(have, entries)))
}

// annotate sets one annotation of the new object; the empty value removes it.
func (d *decider) annotate(key, value string) {
	annotations := d.New.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	if value == "" {
		delete(annotations, key)
	} else {
		annotations[key] = value
	}

	setAnnotations(d.New, annotations)
}

// StampDelete returns the object with the External allowances that ride along
// with the grant to delete it, which no admission can stamp on an object that
// is being deleted; nil where there are none.
func StampDelete(u *unstructured.Unstructured, d Decision) *unstructured.Unstructured {
	for _, f := range d.Findings {
		if f.Verdict != Allowed || f.Change.Field != v1alpha1.MutationDelete || len(f.cause.external) == 0 {
			continue
		}

		hop := v1alpha1.Hop{
			Kind: u.GetKind(), Name: resource.Name(u), Generation: resource.Generation(u), Field: f.Change.Field,
		}
		s := &decider{Request: Request{New: u.DeepCopy()}}
		have, _ := allowance.Parse(u)
		s.annotate(v1alpha1.AnnotationAllowances, allowance.FormatList(allowance.Merge(have, s.external(f, hop))))

		return s.New
	}

	return nil
}
