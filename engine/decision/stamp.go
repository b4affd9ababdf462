// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A stamper writes into the object that is left why it is as it is and what may
// follow.
type stamper struct {
	*judged

	// object to be stored: the new one, or the old one with what its deletion gives;
	// nil on delete where that is nothing.
	object *unstructured.Unstructured
	// attestations of all that led to the changes.
	attestations map[string]string
	// refusal says why it cannot be stamped.
	refusal error
	// opens is true where the gate opens with the request.
	opens bool
}

// A stamp is what is written for allowed changes: what may follow, and why.
type stamp struct {
	allowances []v1alpha1.Allowance
	entries    []v1alpha1.TraceEntry
}

// and returns what is written for these changes and for others.
func (a stamp) and(b stamp) stamp {
	return stamp{allowances: allowance.Merge(a.allowances, b.allowances), entries: append(a.entries, b.entries...)}
}

// stamp stamps the object that is left of a request.
func (g *judged) stamp() *stamper {
	s := &stamper{judged: g, object: g.New}

	if g.Operation == OperationDelete {
		s.object = s.grantDeletion()
	} else {
		s.stampObject()
	}

	s.attestLead()

	return s
}

// stampObject stamps the new object.
func (s *stamper) stampObject() {
	s.keepAsStored()

	changes := s.stampOfChanges()
	if s.Operation == OperationCreate {
		changes.entries = s.creation(changes.entries)
	}

	deletion, announced := s.stampOfAnnounced()
	all := changes.and(deletion)

	s.writeAllowances(all.allowances, !announced)
	s.writeTrace(all.entries)
	s.writeRecord(len(all.entries) > 0)
	s.writeHeld()
	s.recordBuilding()
	s.startGate()
	s.recordGate()
	s.openGate()
	s.keepOwners()

	if name, ok := usedUpgrade(s.findings); ok {
		annotate(s.object, v1alpha1.AnnotationLastUpgrade, name)
	}
}

// keepAsStored leaves what a gate stands before as it is stored where what is asked for differs in nothing but nulls, and maps and lists
// without anything in them. Providers take these away, Crossplane asks for them again, nobody notes that, and what nobody noted is not
// stored.
func (s *stamper) keepAsStored() {
	if !s.gated {
		return
	}

	was, is := resource.Map(s.Old.Object, "spec"), resource.Map(s.object.Object, "spec")

	for _, field := range []string{"forProvider", "initProvider"} {
		noted := slices.ContainsFunc(s.findings, func(f Finding) bool {
			return f.Verdict != Unallowed && under(f.Change, "spec", field)
		})

		if noted || change.Equal(was[field], is[field]) || !change.Equal(filled(was[field]), filled(is[field])) {
			continue
		}

		if is = maps.Clone(is); was[field] == nil {
			delete(is, field)
		} else {
			is[field] = was[field]
		}

		s.object.Object["spec"] = is
		s.kept = append(s.kept, "spec."+field)
	}
}

// filled is a value without nulls, and without maps and lists that have nothing in them; nil for such a one itself. Elements of lists
// stay: they have a place.
func filled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}

		for key, value := range v {
			if value = filled(value); value != nil {
				out[key] = value
			}
		}

		if len(out) > 0 {
			return out
		}

		return nil
	case []any:
		if len(v) == 0 {
			return nil
		}

		out := make([]any, len(v))
		for i := range v {
			out[i] = filled(v[i])
		}

		return out
	default:
		return v
	}
}

// stampOfChanges is what the allowed changes give.
func (s *stamper) stampOfChanges() stamp {
	generation := s.predictGeneration()
	out := stamp{entries: make([]v1alpha1.TraceEntry, 0, len(s.findings))}

	for _, f := range s.findings {
		if f.Verdict != Allowed {
			continue
		}

		if f.Rule == RuleLeftBehind {
			if f.Change.Field = leavingField(f.Change); slices.ContainsFunc(out.entries, func(e v1alpha1.TraceEntry) bool {
				return e.Field == f.Change.Field
			}) {
				continue
			}
		}

		out = out.and(s.stampOf(s.object, f, generation))
	}

	return out
}

// stampOf is what one allowed change of an object gives.
func (s *stamper) stampOf(u *unstructured.Unstructured, f Finding, generation int64) stamp {
	place := ""
	if f.Rule != RuleLeftBehind {
		place = s.place(f.Change)
	}

	if f.Rule == RuleRepair {
		return stamp{entries: []v1alpha1.TraceEntry{s.repairOf(u, f, place, generation)}}
	}

	hop, allowances := s.inject(u, f, place, generation)

	s.attest(f.cause.trace...)
	s.attest(hop)

	by := ""
	if f.Rule == RuleUpgrade && !s.byCrossplane() {
		by = s.User.Name
	}

	return stamp{
		allowances: allowance.Merge(allowances, external(u, f, place, hop)),
		entries: []v1alpha1.TraceEntry{{
			Field: f.Change.Field, Place: place, Generation: generation,
			Initiator: f.cause.initiator, Trace: allowance.ExtendTrace(f.cause.trace, hop), By: by,
		}},
	}
}

// inject returns the hop of an object for a change of it, with everything
// captured, and the allowances that every matching policy adds because of it.
func (s *stamper) inject(u *unstructured.Unstructured, f Finding, place string, generation int64) (v1alpha1.Hop, []v1alpha1.Allowance) {
	j := s.judge
	if f.repeated {
		j = j.ofRepeated()
	}

	hop := v1alpha1.Hop{
		Kind: u.GetKind(), Name: resource.Name(u), Generation: generation, Request: s.request(generation), Field: f.Change.Field,
	}

	if f.cause.exception != "" {
		hop.Attestations = map[string]string{attestException: f.cause.exception}
	}

	all := hop

	var out []v1alpha1.Allowance

	until := s.until(hop)

	for _, p := range s.Policies.For(s.groupKind()) {
		if !p.Covers(f.Change) || !s.mayInject(p, f) || !j.evaluateFor(p, f).Met {
			continue
		}

		step := hop
		step.Attestations = policy.MergeAttestations(p.Attestations(u.Object), hop.Attestations)
		all.Attestations = policy.MergeAttestations(all.Attestations, step.Attestations)
		trace := allowance.ExtendTrace(f.cause.trace, step)

		for _, perm := range p.Spec().Allow {
			out = expand(out, perm, v1alpha1.Allowance{
				Generation: generation, ID: allowance.ID(generation, hop.Request), Initiator: f.cause.initiator, Policy: p.Name(),
				Source: sourceOf(v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: p.Name(), Place: place}, f),
				Trace:  trace, Until: until,
			})
		}
	}

	return all, out
}

// attestException is the attestation of an exception: ENFORCEMENT/EXCEPTION and
// its reason.
const attestException = "exception"

// mayInject reports whether a policy adds its allowances for an allowed change: a
// policy that lists who may start a chain adds them only for those, unless the
// change was itself caused from above. One that asks for approvals adds none for them.
func (s *subjects) mayInject(p *policy.Policy, f Finding) bool {
	if f.cause.propagated || !policy.HasInitiators(p.Spec()) {
		return true
	}

	return (p.RequiredApprovals() == 0 || f.Rule == RuleUpgrade) && s.mayInitiate(p)
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

// sourceOf is what gives an allowance for an allowed change of the object that carries it. A deletion that follows from one
// of the parent names that.
func sourceOf(by v1alpha1.AllowanceSource, f Finding) v1alpha1.AllowanceSource {
	if f.Change.Field != v1alpha1.MutationDelete {
		by.Field, by.Also, by.From = f.Change.Field, nil, ""

		return by
	}

	out := v1alpha1.AllowanceSource{Type: v1alpha1.SourceDeletion, Name: by.Name}
	if parents := f.cause.by; parents != nil && allowance.ByDeletion(*parents) {
		out.From = parents.ID
	}

	return out
}

// external returns what rides along with a change of an object, as its
// allowances: of one that is no managed resource the actions of other systems.
func external(u *unstructured.Unstructured, f Finding, place string, hop v1alpha1.Hop) []v1alpha1.Allowance {
	out := make([]v1alpha1.Allowance, 0, len(f.cause.external))

	for _, e := range f.cause.external {
		e.Source.Place = place

		if !resource.IsManaged(u) {
			if e.Mutations = allowance.OfOtherSystems(e.Mutations); len(e.Mutations) == 0 {
				continue
			}
		}

		e.Generation, e.ID, e.Source = hop.Generation, allowance.ID(hop.Generation, hop.Request), sourceOf(e.Source, f)
		e.Initiator, e.Digest, e.Approval = f.cause.initiator, "", ""
		e.Trace = allowance.ExtendTrace(f.cause.trace, hop)
		out = append(out, e)
	}

	return out
}

// creation is the trace of a new object: one entry, with what any policy
// captured from it. A root's is the user who made it, where no policy says who
// may, and where a policy does not allow it to them. Another one that is not
// allowed has none.
func (s *stamper) creation(entries []v1alpha1.TraceEntry) []v1alpha1.TraceEntry {
	made := s.findings[0]
	if made.Verdict == Unallowed && !s.root() {
		return nil
	}

	entry := v1alpha1.TraceEntry{Field: v1alpha1.MutationCreate, Generation: 1, Initiator: made.cause.initiator}
	if made.Verdict != Allowed {
		entry.Initiator = s.User.Name
	}

	hop := v1alpha1.Hop{Kind: s.object.GetKind(), Name: resource.Name(s.object), Generation: 1, Field: v1alpha1.MutationCreate}
	for _, e := range entries {
		hop.Attestations = policy.MergeAttestations(hop.Attestations, e.Trace[len(e.Trace)-1].Attestations)
	}

	entry.Trace = allowance.ExtendTrace(made.cause.trace, hop)
	if made.Rule == RuleRepair {
		entry.Repaired = &metav1.Time{Time: s.Now}
	}

	return []v1alpha1.TraceEntry{entry}
}

// writeAllowances adds granted allowances to those the object carries, and
// takes away those that have served, and those of a deletion that is withdrawn.
func (s *stamper) writeAllowances(granted []v1alpha1.Allowance, withdraw bool) {
	have, err := allowance.Parse(s.object)
	if err != nil {
		s.problem(inObject(s.object, err))
	}

	pruned := have
	if s.Old != nil && len(have) > 0 {
		pruned = s.revoke(allowance.Unserved(s.Old, have))
		if withdraw && s.composing {
			pruned = slices.DeleteFunc(pruned, ofAnnounced)
		}
	}

	if gate.Free(s.object) {
		pruned, granted = gate.Unopened(pruned), gate.Unopened(granted)
	}

	if len(granted) == 0 && len(pruned) == len(have) {
		return
	}

	value := allowance.FormatList(allowance.Merge(pruned, granted))
	if err := allowance.CheckSize(value); err != nil {
		s.refusal = inObject(s.object, err)
	}

	annotate(s.object, v1alpha1.AnnotationAllowances, value)
}

// revoke takes away allowances that an allowed change of a field gave, once an
// unallowed change of the same field is stored over it: what the controllers
// would carry on is no longer what was allowed.
func (s *stamper) revoke(have []v1alpha1.Allowance) []v1alpha1.Allowance {
	if s.action == v1alpha1.ActionHold {
		return have // Nothing unallowed is stored.
	}

	return slices.DeleteFunc(have, func(a v1alpha1.Allowance) bool {
		return !allowance.OfApproval(a) && slices.ContainsFunc(s.findings, func(f Finding) bool {
			return f.Verdict == Unallowed && s.givenFor(a, f.Change)
		})
	})
}

// givenFor reports whether an allowance was given for a change of the same field, or of one that it is in.
func (s *stamper) givenFor(a v1alpha1.Allowance, c change.Change) bool {
	place := cmp.Or(s.place(c), c.Field)

	return slices.ContainsFunc(allowance.PlacesOf(a), func(field string) bool { return allowance.Within(place, field) })
}

func (s *stamper) writeTrace(entries []v1alpha1.TraceEntry) {
	if len(entries) == 0 {
		return
	}

	have, err := allowance.ParseTrace(s.object)
	if err != nil {
		s.problem(inObject(s.object, err))
	}

	annotate(s.object, v1alpha1.AnnotationTrace, allowance.FormatList(allowance.AddTrace(have, entries)))
}

// writeRecord records the number of an allowed change that makes no generation, the allowances that are used up by it, and
// the window that allowed it.
func (s *stamper) writeRecord(allowed bool) {
	have, err := allowance.ParseRecord(s.object)
	if err != nil {
		s.problem(inObject(s.object, err))

		return // It stands for whatever it was.
	}

	rec := have

	if n := s.request(s.predictGeneration()); allowed && n > 0 {
		rec.Request = allowance.ID(s.predictGeneration(), n)
	}

	var uses []v1alpha1.Use

	for _, f := range s.findings {
		if f.Verdict == Allowed && f.cause.by != nil {
			uses = append(uses, allowance.UseOf(*f.cause.by))
		}

		if f.Rule == RuleInitializing && f.Change.Field == v1alpha1.MutationCreate {
			uses = append(uses, s.usesOfCreation()...)
		}

		if f.Verdict == Allowed && f.Rule == RuleUpgrade {
			rec = allowance.AddWindow(rec, s.uidOf(f.Policy))
		}
	}

	if len(uses) > 0 {
		usable := s.usable()
		uses = slices.DeleteFunc(uses, func(use v1alpha1.Use) bool {
			return !slices.ContainsFunc(usable, func(a v1alpha1.Allowance) bool { return allowance.UseOf(a) == use })
		})
	}

	if len(uses) > 0 || allowed && len(rec.Used) > 0 { // Nothing is written only to forget some.
		rec = allowance.AddUses(rec, uses, s.allowances, s.ParentSettles)
	}

	s.writeWithheld(&rec)

	if text := allowance.FormatRecord(rec); text != allowance.FormatRecord(have) {
		annotate(s.object, v1alpha1.AnnotationRecord, text)
	}
}

// usesOfCreation are the uses of what the creation of the parent allows: the object is made as that has it.
func (g *grants) usesOfCreation() []v1alpha1.Use {
	var out []v1alpha1.Use

	for _, a := range g.allowances {
		if a.ID == allowance.ID(1, 0) {
			out = append(out, allowance.UseOf(a))
		}
	}

	return out
}
