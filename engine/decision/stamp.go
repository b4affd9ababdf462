// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// stamped is what is stored, with why it is as it is and what may follow.
type stamped struct {
	// object to be stored: the new one, or the old one with what its deletion gives;
	// nil on delete where that is nothing.
	object *unstructured.Unstructured
	// attestations of all that led to the changes.
	attestations map[string]string
	// refusal says why it cannot be stamped.
	refusal error
	// opens is true where the gate opens with the request.
	opens bool
	// kept are fields that were put back, and overruled those of which the writer's
	// value is not what is stored.
	kept, overruled []string
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

// stampObject stamps the object that is left of a request.
func stampObject(in *inputs, j *judged) *stamped {
	s := &stamped{object: in.o.New, kept: in.proposal.kept, overruled: in.proposal.overruled}

	if in.o.Operation == OperationDelete {
		s.object = grantDeletion(in, j, s)
	} else {
		stampNew(in, j, s)
	}

	attestLead(in.o, in.auth.Policies, j.findings, s)

	return s
}

// stampNew stamps the new object.
func stampNew(in *inputs, j *judged, s *stamped) {
	keepAsStored(in.o, in.outside, j.findings, s)

	// 1. Why, and what may follow.
	changes := stampOfChanges(in, j, s)
	if in.o.Operation == OperationCreate {
		changes.entries = creation(in.o, in.by, in.now, j.findings[0], s.object, changes.entries)
	}

	deletion, announced := stampOfAnnounced(in)
	all := changes.and(deletion)

	writeAllowances(s, in.problems, all.allowances, stillCarried(in.o.Old, in.places, j, !announced && in.how.composing))
	writeTrace(in.problems, s.object, all.entries)

	// 2. What was used of what the parent allows, and what is held.
	writeRecord(in, j, s, len(all.entries) > 0)
	writeHeld(in, j, s.object)
	recordBuilding(in.o, in.now, s.object)

	// 3. The gate.
	startGate(in, j, s)
	recordGate(in.o, in.by, in.outside, in.now, j.findings, s)
	openGate(in.o, in.by, in.outside, in.now, s)
	keepOwners(in.o, in.by, j.changes, s)

	if name, ok := usedUpgrade(j.findings); ok {
		annotate(s.object, v1alpha1.AnnotationLastUpgrade, name)
	}
}

// keepAsStored leaves what a gate stands before as it is stored where what is asked for differs in nothing but nulls, and maps and lists
// without anything in them. Providers take these away, Crossplane asks for them again, nobody notes that, and what nobody noted is not
// stored.
func keepAsStored(o objects, outside outside, findings []Finding, s *stamped) {
	if !outside.gated {
		return
	}

	was, is := resource.Map(o.Old.Object, "spec"), resource.Map(s.object.Object, "spec")

	for _, field := range []string{"forProvider", "initProvider"} {
		noted := slices.ContainsFunc(findings, func(f Finding) bool {
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
func stampOfChanges(in *inputs, j *judged, s *stamped) stamp {
	generation := predictGeneration(in.o, j.changes, j.back)
	out := stamp{entries: make([]v1alpha1.TraceEntry, 0, len(j.findings))}

	for _, f := range j.findings {
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

		out = out.and(stampOf(in, s, s.object, f, generation))
	}

	return out
}

// stampOf is what one allowed change of an object gives.
func stampOf(in *inputs, s *stamped, u *unstructured.Unstructured, f Finding, generation int64) stamp {
	place := ""
	if f.Rule != RuleLeftBehind {
		place = in.places.place(f.Change)
	}

	if f.Rule == RuleRepair {
		return stamp{entries: []v1alpha1.TraceEntry{repairOf(in.by, in.now, u, f, place, generation)}}
	}

	hop, allowances := inject(in.o, in.auth, in.earlier, in.now, u, f, place, generation)

	s.attest(f.cause.trace...)
	s.attest(hop)

	by := ""
	if f.Rule == RuleUpgrade && !in.by.isCrossplane() {
		by = in.by.User.Name
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
func inject(
	o objects, auth *authority, earlier earlier, now time.Time, u *unstructured.Unstructured, f Finding, place string,
	generation int64,
) (v1alpha1.Hop, []v1alpha1.Allowance) {
	evaluate := auth.evaluateFor
	if f.repeated {
		evaluate = auth.madeAgain(earlier.before).evaluateFor
	}

	hop := v1alpha1.Hop{
		Kind: u.GetKind(), Name: resource.Name(u), Generation: generation, Request: requestNumber(o, earlier, generation), Field: f.Change.Field,
	}

	if f.cause.exception != "" {
		hop.Attestations = map[string]string{attestException: f.cause.exception}
	}

	all := hop

	var out []v1alpha1.Allowance

	until := until(o, now, hop)

	for _, p := range auth.Policies.For(o.groupKind()) {
		if !p.Covers(f.Change) || !auth.mayInject(p, f) || !evaluate(p, f).Met {
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
func (auth *authority) mayInject(p *policy.Policy, f Finding) bool {
	if f.cause.propagated || !policy.HasInitiators(p.Spec()) {
		return true
	}

	return (p.RequiredApprovals() == 0 || f.Rule == RuleUpgrade) && auth.mayInitiate(p)
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
func creation(
	o objects, by writer, now time.Time, made Finding, object *unstructured.Unstructured, entries []v1alpha1.TraceEntry,
) []v1alpha1.TraceEntry {
	if made.Verdict == Unallowed && !o.Root {
		return nil
	}

	entry := v1alpha1.TraceEntry{Field: v1alpha1.MutationCreate, Generation: 1, Initiator: made.cause.initiator}
	if made.Verdict != Allowed {
		entry.Initiator = by.User.Name
	}

	hop := v1alpha1.Hop{Kind: object.GetKind(), Name: resource.Name(object), Generation: 1, Field: v1alpha1.MutationCreate}
	for _, e := range entries {
		hop.Attestations = policy.MergeAttestations(hop.Attestations, e.Trace[len(e.Trace)-1].Attestations)
	}

	entry.Trace = allowance.ExtendTrace(made.cause.trace, hop)
	if made.Rule == RuleRepair {
		entry.Repaired = &metav1.Time{Time: now}
	}

	return []v1alpha1.TraceEntry{entry}
}

// writeAllowances adds granted allowances to those the object carries, of which it keeps what is still carried.
func writeAllowances(
	s *stamped, problems *problems, granted []v1alpha1.Allowance, carried func([]v1alpha1.Allowance) []v1alpha1.Allowance,
) {
	have, err := allowance.Parse(s.object)
	if err != nil {
		problems.add(inObject(s.object, err))
	}

	pruned := carried(have)
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

// stillCarried tells which allowances an object still carries: not those that have served, nor those of a deletion that is
// withdrawn.
func stillCarried(
	old *unstructured.Unstructured, places *places, j *judged, withdraw bool,
) func([]v1alpha1.Allowance) []v1alpha1.Allowance {
	return func(have []v1alpha1.Allowance) []v1alpha1.Allowance {
		if old == nil || len(have) == 0 {
			return have
		}

		out := revoke(places, j, allowance.Unserved(old, have))
		if withdraw {
			out = slices.DeleteFunc(out, ofAnnounced)
		}

		return out
	}
}

// revoke takes away allowances that an allowed change of a field gave, once an
// unallowed change of the same field is stored over it: what the controllers
// would carry on is no longer what was allowed.
func revoke(places *places, j *judged, have []v1alpha1.Allowance) []v1alpha1.Allowance {
	if j.action == v1alpha1.ActionHold {
		return have // Nothing unallowed is stored.
	}

	return slices.DeleteFunc(have, func(a v1alpha1.Allowance) bool {
		return !allowance.OfApproval(a) && slices.ContainsFunc(j.findings, func(f Finding) bool {
			return f.Verdict == Unallowed && givenFor(places, a, f.Change)
		})
	})
}

// givenFor reports whether an allowance was given for a change of the same field, or of one that it is in.
func givenFor(places *places, a v1alpha1.Allowance, c change.Change) bool {
	place := cmp.Or(places.place(c), c.Field)

	return slices.ContainsFunc(allowance.PlacesOf(a), func(field string) bool { return allowance.Within(place, field) })
}

func writeTrace(problems *problems, object *unstructured.Unstructured, entries []v1alpha1.TraceEntry) {
	if len(entries) == 0 {
		return
	}

	have, err := allowance.ParseTrace(object)
	if err != nil {
		problems.add(inObject(object, err))
	}

	annotate(object, v1alpha1.AnnotationTrace, allowance.FormatList(allowance.AddTrace(have, entries)))
}

// writeRecord records the number of an allowed change that makes no generation, the allowances that are used up by it, and
// the window that allowed it.
func writeRecord(in *inputs, j *judged, s *stamped, allowed bool) {
	have, err := allowance.ParseRecord(s.object)
	if err != nil {
		in.problems.add(inObject(s.object, err))

		return // It stands for whatever it was.
	}

	rec := have

	if n := requestNumber(in.o, in.earlier, predictGeneration(in.o, j.changes, j.back)); allowed && n > 0 {
		rec.Request = allowance.ID(predictGeneration(in.o, j.changes, j.back), n)
	}

	var uses []v1alpha1.Use

	for _, f := range j.findings {
		if f.Verdict == Allowed && f.cause.by != nil {
			uses = append(uses, allowance.UseOf(*f.cause.by))
		}

		if f.Rule == RuleInitializing && f.Change.Field == v1alpha1.MutationCreate {
			uses = append(uses, usesOfCreation(in.above)...)
		}

		if f.Verdict == Allowed && f.Rule == RuleUpgrade {
			rec = allowance.AddWindow(rec, in.windows.uidOf(f.Policy))
		}
	}

	if len(uses) > 0 {
		usable := usable(in.o, in.how, in.above)
		uses = slices.DeleteFunc(uses, func(use v1alpha1.Use) bool {
			return !slices.ContainsFunc(usable, func(a v1alpha1.Allowance) bool { return allowance.UseOf(a) == use })
		})
	}

	if len(uses) > 0 || allowed && len(rec.Used) > 0 { // Nothing is written only to forget some.
		rec = allowance.AddUses(rec, uses, in.above.allowances, in.how.settles)
	}

	writeWithheld(in, j, s.object, &rec)

	if text := allowance.FormatRecord(rec); text != allowance.FormatRecord(have) {
		annotate(s.object, v1alpha1.AnnotationRecord, text)
	}
}

// usesOfCreation are the uses of what the creation of the parent allows: the object is made as that has it.
func usesOfCreation(above *above) []v1alpha1.Use {
	var out []v1alpha1.Use

	for _, a := range above.allowances {
		if a.ID == allowance.ID(1, 0) {
			out = append(out, allowance.UseOf(a))
		}
	}

	return out
}
