// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stamp writes into the object why it is as it is and what may follow: trace, allowances and the other records, and the
// gate of a managed resource.
//
// Its files:
//   - stamp.go: trace and allowances for allowed changes ([Object]); allowances dropped after use or after an unallowed change; the record
//     of used ones; the finding that a decision is told by ([Lead])
//   - deletion.go: the allowances that a deletion gives, written before it begins, and dropped if it does not ([Unused])
//   - heldrecord.go: the annotation kausality.io/held: held changes and unallowed stored values; its text for people
//   - edit.go: which unallowed values of a root or composed resource are recorded as edits and of whom, and when an edit is
//     resolved
//   - gate.go: managementPolicies of a new managed resource, and the gate that opens in Crossplane's own write
//   - asstored.go: no write for empty values that a provider removed
//   - generation.go: the generation of the new object, predicted; the number of a request within it
//   - upkeep.go: annotations that the gate controller updates as a parent gets ready ([Upkeep])
package stamp

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/grant"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Stamped is what is stored, with why it is as it is and what may follow.
type Stamped struct {
	// Object to be stored: the new one, or the old one with what its deletion gives;
	// nil on delete where that is nothing.
	Object *unstructured.Unstructured
	// Attestations of all that led to the changes.
	Attestations map[string]string
	// Refusal says why it cannot be stamped.
	Refusal error
	// Opens is true where the gate opens with the request.
	Opens bool
	// Kept are fields that were put back, and overruled those of which the writer's
	// value is not what is stored.
	Kept, Overruled []string
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

// Object stamps the object that is left of a request, which itself is not modified.
func Object(in *input.Inputs, j *rule.Judged, t *hold.Taken) *Stamped {
	s := &Stamped{Kept: in.Proposal.Kept, Overruled: in.Proposal.Overruled}
	if in.Objects.New != nil {
		s.Object = input.WithOwnMetadata(in.Objects.New)
	}

	if in.Objects.Operation == request.OperationDelete {
		s.Object = grantDeletion(in, j, s)
	} else {
		stampNew(in, j, t, s)
	}

	attestLead(in.Objects, in.Authority.Policies, j.Findings, s)

	return s
}

// stampNew stamps the new object.
func stampNew(in *input.Inputs, j *rule.Judged, t *hold.Taken, s *Stamped) {
	keepAsStored(in.Objects, in.External, j.Findings, s)

	// 1. Why, and what may follow.
	changes := stampOfChanges(in, j, t.Changes, s)
	if in.Objects.Operation == request.OperationCreate {
		changes.entries = creation(in.Objects, in.Writer, in.Now, j.Findings[0], s.Object, changes.entries)
	}

	deletion, announced := stampOfAnnounced(in)
	all := changes.and(deletion)

	writeAllowances(s, in.Problems, all.allowances, stillCarried(in.Objects.Old, in.Places, j, !announced && in.Manner.Composing))
	writeTrace(in.Problems, s.Object, all.entries)

	// 2. What was used of what the parent allows, and what is held.
	writeRecord(in, j, t, s, len(all.entries) > 0)
	writeHeld(in, j, t, s.Object)
	input.RecordBuilding(in.Objects, in.Now, s.Object)

	// 3. The gate.
	startGate(in, j, s)
	recordGate(in.Objects, in.Writer, in.External, in.Now, j.Findings, s)
	openGate(in.Objects, in.Writer, in.External, in.Now, s)
	keepOwners(in.Objects, in.Writer, j.Changes, s)

	if name, ok := rule.UsedUpgrade(j.Findings); ok {
		input.Annotate(s.Object, v1alpha1.AnnotationLastUpgrade, name)
	}
}

// stampOfChanges is what the allowed changes give.
func stampOfChanges(in *input.Inputs, j *rule.Judged, back []change.Change, s *Stamped) stamp {
	generation := PredictGeneration(in.Objects, j.Changes, back)
	out := stamp{entries: make([]v1alpha1.TraceEntry, 0, len(j.Findings))}

	for _, f := range j.Findings {
		if f.Verdict != finding.Allowed {
			continue
		}

		if f.Rule == finding.RuleLeftBehind {
			if f.Change.Field = input.LeavingField(f.Change); slices.ContainsFunc(out.entries, func(e v1alpha1.TraceEntry) bool {
				return e.Field == f.Change.Field
			}) {
				continue
			}
		}

		out = out.and(stampOf(in, s, s.Object, f, generation))
	}

	return out
}

// stampOf is what one allowed change of an object gives.
func stampOf(in *input.Inputs, s *Stamped, u *unstructured.Unstructured, f finding.Finding, generation int64) stamp {
	place := ""
	if f.Rule != finding.RuleLeftBehind {
		place = in.Places.Place(f.Change)
	}

	if f.Rule == finding.RuleRepair {
		return stamp{entries: []v1alpha1.TraceEntry{rule.RepairOf(in.Writer, in.Now, u, f, place, generation)}}
	}

	hop, allowances := inject(in.Objects, in.Authority, in.Earlier, in.Now, u, f, place, generation)

	s.attest(f.Cause.Trace...)
	s.attest(hop)

	by := ""
	if f.Rule == finding.RuleUpgrade && !in.Writer.IsCrossplane() {
		by = in.Writer.User.Name
	}

	return stamp{
		allowances: allowance.Merge(allowances, external(u, f, place, hop)),
		entries: []v1alpha1.TraceEntry{{
			Field: f.Change.Field, Place: place, Generation: generation,
			Initiator: f.Cause.Initiator, Trace: allowance.ExtendTrace(f.Cause.Trace, hop), By: by,
		}},
	}
}

// inject returns the hop of an object for a change of it, with everything
// captured, and the allowances that every matching policy adds because of it.
func inject(
	o request.Objects, auth *authority.Authority, earlier input.Earlier, now time.Time, u *unstructured.Unstructured, f finding.Finding,
	place string,
	generation int64,
) (v1alpha1.Hop, []v1alpha1.Allowance) {
	evaluate := auth.EvaluateFor
	if f.Repeated {
		evaluate = auth.MadeAgain(earlier.Before).EvaluateFor
	}

	hop := v1alpha1.Hop{
		Kind: u.GetKind(), Name: resource.Name(u), Generation: generation, Request: RequestNumber(o, earlier, generation), Field: f.Change.Field,
	}

	if f.Cause.Exception != "" {
		hop.Attestations = map[string]string{attestException: f.Cause.Exception}
	}

	all := hop

	var out []v1alpha1.Allowance

	until := grant.Until(o, now, hop)

	for _, p := range auth.Policies.For(o.GroupKind()) {
		if !p.Covers(f.Change) || !auth.MayInject(p, f) || !evaluate(p, f).Met {
			continue
		}

		step := hop
		step.Attestations = policy.MergeAttestations(p.Attestations(u.Object), hop.Attestations)
		all.Attestations = policy.MergeAttestations(all.Attestations, step.Attestations)
		trace := allowance.ExtendTrace(f.Cause.Trace, step)

		for _, perm := range p.Spec().Allow {
			out = authority.Expand(out, perm, v1alpha1.Allowance{
				Generation: generation, ID: allowance.ID(generation, hop.Request), Initiator: f.Cause.Initiator, Policy: p.Name(),
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

// sourceOf is what gives an allowance for an allowed change of the object that carries it. A deletion that follows from one
// of the parent names that.
func sourceOf(by v1alpha1.AllowanceSource, f finding.Finding) v1alpha1.AllowanceSource {
	if f.Change.Field != v1alpha1.MutationDelete {
		by.Field, by.Also, by.From = f.Change.Field, nil, ""

		return by
	}

	out := v1alpha1.AllowanceSource{Type: v1alpha1.SourceDeletion, Name: by.Name}
	if parents := f.Cause.By; parents != nil && allowance.ByDeletion(*parents) {
		out.From = parents.ID
	}

	return out
}

// external returns what rides along with a change of an object, as its
// allowances: of one that is no managed resource the actions of other systems.
func external(u *unstructured.Unstructured, f finding.Finding, place string, hop v1alpha1.Hop) []v1alpha1.Allowance {
	out := make([]v1alpha1.Allowance, 0, len(f.Cause.External))

	for _, e := range f.Cause.External {
		e.Source.Place = place

		if !resource.IsManaged(u) {
			if e.Mutations = allowance.OfOtherSystems(e.Mutations); len(e.Mutations) == 0 {
				continue
			}
		}

		e.Generation, e.ID, e.Source = hop.Generation, allowance.ID(hop.Generation, hop.Request), sourceOf(e.Source, f)
		e.Initiator, e.Digest, e.Approval = f.Cause.Initiator, "", ""
		e.Trace = allowance.ExtendTrace(f.Cause.Trace, hop)
		out = append(out, e)
	}

	return out
}

// creation is the trace of a new object: one entry, with what any policy
// captured from it. A root's is the user who made it, where no policy says who
// may, and where a policy does not allow it to them. Another one that is not
// allowed has none.
func creation(
	o request.Objects, by request.Writer, now time.Time, made finding.Finding, object *unstructured.Unstructured,
	entries []v1alpha1.TraceEntry,
) []v1alpha1.TraceEntry {
	if made.Verdict == finding.Unallowed && !o.Root {
		return nil
	}

	entry := v1alpha1.TraceEntry{Field: v1alpha1.MutationCreate, Generation: 1, Initiator: made.Cause.Initiator}
	if made.Verdict != finding.Allowed {
		entry.Initiator = by.User.Name
	}

	hop := v1alpha1.Hop{Kind: object.GetKind(), Name: resource.Name(object), Generation: 1, Field: v1alpha1.MutationCreate}
	for _, e := range entries {
		hop.Attestations = policy.MergeAttestations(hop.Attestations, e.Trace[len(e.Trace)-1].Attestations)
	}

	entry.Trace = allowance.ExtendTrace(made.Cause.Trace, hop)
	if made.Rule == finding.RuleRepair {
		entry.Repaired = &metav1.Time{Time: now}
	}

	return []v1alpha1.TraceEntry{entry}
}

// writeAllowances adds granted allowances to those the object carries, of which it keeps what is still carried.
func writeAllowances(
	s *Stamped, problems *request.Problems, granted []v1alpha1.Allowance, carried func([]v1alpha1.Allowance) []v1alpha1.Allowance,
) {
	have, err := allowance.Parse(s.Object)
	if err != nil {
		problems.Add(request.InObject(s.Object, err))
	}

	pruned := carried(have)
	if managed.Free(s.Object) {
		pruned, granted = managed.Unopened(pruned), managed.Unopened(granted)
	}

	if len(granted) == 0 && len(pruned) == len(have) {
		return
	}

	value := allowance.FormatList(allowance.Merge(pruned, granted))
	if err := allowance.CheckSize(value); err != nil {
		s.Refusal = request.InObject(s.Object, err)
	}

	input.Annotate(s.Object, v1alpha1.AnnotationAllowances, value)
}

// stillCarried tells which allowances an object still carries: not those that have served, nor those of a deletion that is
// withdrawn.
func stillCarried(
	old *unstructured.Unstructured, places *request.Places, j *rule.Judged, withdraw bool,
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
func revoke(places *request.Places, j *rule.Judged, have []v1alpha1.Allowance) []v1alpha1.Allowance {
	if j.Action == v1alpha1.ActionHold {
		return have // Nothing unallowed is stored.
	}

	return slices.DeleteFunc(have, func(a v1alpha1.Allowance) bool {
		return !allowance.OfApproval(a) && slices.ContainsFunc(j.Findings, func(f finding.Finding) bool {
			return f.Verdict == finding.Unallowed && givenFor(places, a, f.Change)
		})
	})
}

// givenFor reports whether an allowance was given for a change of the same field, or of one that it is in.
func givenFor(places *request.Places, a v1alpha1.Allowance, c change.Change) bool {
	place := cmp.Or(places.Place(c), c.Field)

	return slices.ContainsFunc(allowance.PlacesOf(a), func(field string) bool { return allowance.Within(place, field) })
}

func writeTrace(problems *request.Problems, object *unstructured.Unstructured, entries []v1alpha1.TraceEntry) {
	if len(entries) == 0 {
		return
	}

	have, err := allowance.ParseTrace(object)
	if err != nil {
		problems.Add(request.InObject(object, err))
	}

	input.Annotate(object, v1alpha1.AnnotationTrace, allowance.FormatList(allowance.AddTrace(have, entries)))
}

// writeRecord records the number of an allowed change that makes no generation, the allowances that are used up by it, and
// the window that allowed it.
func writeRecord(in *input.Inputs, j *rule.Judged, t *hold.Taken, s *Stamped, allowed bool) {
	have, err := allowance.ParseRecord(s.Object)
	if err != nil {
		in.Problems.Add(request.InObject(s.Object, err))

		return // It stands for whatever it was.
	}

	rec := have

	if n := RequestNumber(in.Objects, in.Earlier, PredictGeneration(in.Objects, j.Changes, t.Changes)); allowed && n > 0 {
		rec.Request = allowance.ID(PredictGeneration(in.Objects, j.Changes, t.Changes), n)
	}

	var uses []v1alpha1.Use

	for _, f := range j.Findings {
		if f.Verdict == finding.Allowed && f.Cause.By != nil {
			uses = append(uses, allowance.UseOf(*f.Cause.By))
		}

		if f.Rule == finding.RuleInitializing && f.Change.Field == v1alpha1.MutationCreate {
			uses = append(uses, usesOfCreation(in.Above)...)
		}

		if f.Verdict == finding.Allowed && f.Rule == finding.RuleUpgrade {
			rec = allowance.AddWindow(rec, in.Windows.UIDOf(f.Policy))
		}
	}

	if len(uses) > 0 {
		usable := grant.Usable(in.Objects, in.Manner, in.Above)
		uses = slices.DeleteFunc(uses, func(use v1alpha1.Use) bool {
			return !slices.ContainsFunc(usable, func(a v1alpha1.Allowance) bool { return allowance.UseOf(a) == use })
		})
	}

	if len(uses) > 0 || allowed && len(rec.Used) > 0 { // Nothing is written only to forget some.
		rec = allowance.AddUses(rec, uses, in.Above.Allowances, in.Manner.Settles)
	}

	hold.WriteWithheld(in, j.Action, t.Places, s.Object, &rec)

	if text := allowance.FormatRecord(rec); text != allowance.FormatRecord(have) {
		input.Annotate(s.Object, v1alpha1.AnnotationRecord, text)
	}
}

// usesOfCreation are the uses of what the creation of the parent allows: the object is made as that has it.
func usesOfCreation(above *input.Above) []v1alpha1.Use {
	var out []v1alpha1.Use

	for _, a := range above.Allowances {
		if a.ID == allowance.ID(1, 0) {
			out = append(out, allowance.UseOf(a))
		}
	}

	return out
}

// attestLead notes what the policies about an unallowed change capture, or about
// one that leaves no trace: who asks with a ticket is to be found by it, though it
// was of no use.
func attestLead(o request.Objects, policies *policy.Set, findings []finding.Finding, s *Stamped) {
	lead, ok := Lead(findings)
	if !ok || lead.Verdict == finding.Ungoverned || lead.Verdict == finding.Allowed && s.Attestations != nil {
		return
	}

	if lead.Verdict == finding.Allowed {
		s.attest(lead.Cause.Trace...)
	}

	u := cmp.Or(o.Asked, o.Target())

	for _, p := range policies.For(o.GroupKind()) {
		if len(p.Spec().Match.Capture) > 0 && p.Covers(lead.Change) {
			s.attest(v1alpha1.Hop{Attestations: p.Attestations(u.Object)})
		}
	}
}

// attest notes the values that were captured on the way to a change, and from the
// object itself.
func (s *Stamped) attest(hops ...v1alpha1.Hop) {
	for i := range hops {
		if len(hops[i].Attestations) > 0 {
			s.Attestations = policy.MergeAttestations(s.Attestations, hops[i].Attestations)
		}
	}
}

// Lead is the finding that a decision is told by: an unallowed one, or else an allowed one; false where there is none.
func Lead(findings []finding.Finding) (finding.Finding, bool) {
	if len(findings) == 0 {
		return finding.Finding{}, false
	}

	weight := func(f finding.Finding) int {
		return slices.Index([]finding.Verdict{finding.Unallowed, finding.Allowed, finding.Ungoverned}, f.Verdict)
	}

	return slices.MinFunc(findings, func(a, b finding.Finding) int { return cmp.Compare(weight(a), weight(b)) }), true
}
