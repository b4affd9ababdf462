// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// A decision is recorded with what it was made by: policies change, and who asks
// later why something was refused or let through asks about those of that moment.

// Source is a policy, a window or an Enforcement that had a part in a decision.
type Source struct {
	// Kind of it.
	Kind string
	// Name of it; of an exception ENFORCEMENT/EXCEPTION.
	Name string
	// Generation it had; zero where that is not known.
	Generation int64
}

// String returns NAME@GENERATION.
func (s Source) String() string {
	if s.Generation == 0 {
		return s.Name
	}

	return fmt.Sprintf("%s@%d", s.Name, s.Generation)
}

func compareSources(a, b Source) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind), cmp.Compare(a.Generation, b.Generation))
}

// Governing are the Enforcements that govern the object, in order; not to be
// modified.
func (d *Decision) Governing() []Source { return d.governing }

// foremost are the findings that say most: those on what is not allowed, or else
// on what is.
func (d *Decision) foremost(yield func(*Finding) bool) {
	lead, _ := d.Lead()

	for i := range d.Findings {
		if f := &d.Findings[i]; f.Verdict == lead.Verdict && !yield(f) {
			return
		}
	}
}

// Fields are those that say most of the decision: that are not allowed, or else
// those that are.
func (d *Decision) Fields() []string {
	var out []string
	for f := range d.foremost {
		out = append(out, f.Change.Field)
	}

	return out
}

// Policies are those by which these fields were decided, in order: that allowed
// them, or that would once what they lack is there.
func (d *Decision) Policies() []Source {
	var out []Source

	for f := range d.foremost {
		for _, s := range f.Policies() {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}

	slices.SortFunc(out, compareSources)

	return out
}

// Policies are those by which the change was decided: the one that allowed it, or
// those that would once what they lack is there.
func (f Finding) Policies() []Source {
	if f.Verdict != Unallowed {
		if f.Policy == "" {
			return nil
		}

		return []Source{{Kind: f.kind(), Name: f.Policy, Generation: f.Generation}}
	}

	var out []Source

	for _, l := range f.Lacks {
		if s := l.source(); l.Policy != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}

	return out
}

// kind is the kind of what allowed a change.
func (f Finding) kind() string {
	switch f.Rule {
	case RuleUpgrade:
		return policy.KindUpgrade
	case RuleException:
		return policy.KindEnforcement
	default:
		return policy.KindPolicy
	}
}

// source is what lacks something.
func (l Lack) source() Source {
	s := Source{Kind: policy.KindPolicy, Name: l.Policy, Generation: l.Generation}
	if l.ofWindow() {
		s.Kind = policy.KindUpgrade
	}

	return s
}

// ofWindow reports whether it is an UpgradeAllowance that lacks it.
func (l Lack) ofWindow() bool { return l.What == policy.LackEdited || l.What == policy.LackWindow }

// Cause is why a field is refused.
type Cause struct {
	// Field that is refused; empty for the whole object, which is not to be made or
	// deleted.
	Field string
	// Message says why, for a person, and which generation of which policies and
	// Enforcements says so.
	Message string
}

// Limits of what is reported of one refusal.
const (
	// maxCauses limits the fields that are reported.
	maxCauses = 64
	// maxCauseText limits the bytes of what is missing: it quotes expressions, which
	// may be as long as a policy.
	maxCauseText = 1024
)

// Causes say why each field of a request is refused, the first of them; the last
// one shows how many more there are.
func (d *Decision) Causes() []Cause {
	switch {
	case d.Refusal != nil:
		return []Cause{{Field: annotationField(v1alpha1.AnnotationAllowances), Message: d.Refusal.Error()}}
	case len(d.Forged) > 0:
		out := make([]Cause, len(d.Forged))
		for i, key := range d.Forged {
			out[i] = Cause{Field: annotationField(key), Message: forgedMessage(d.Forged[i : i+1])}
		}

		return out
	}

	var out []Cause

	more := 0

	for _, f := range d.Findings {
		switch {
		case f.Verdict != Unallowed:
		case len(out) == maxCauses:
			more++
		default:
			out = append(out, d.cause(f))
		}
	}

	if more > 0 {
		out = append(out, Cause{Message: fmt.Sprintf("and %d more", more)})
	}

	return out
}

// annotationField is the path of an annotation.
func annotationField(key string) string { return "metadata.annotations[" + key + "]" }

// cause is why a change is refused.
func (d *Decision) cause(f Finding) Cause {
	out := Cause{Field: f.Change.Field, Message: change.Text(f.Missing(), maxCauseText)}
	if out.Field == v1alpha1.MutationCreate || out.Field == v1alpha1.MutationDelete {
		out.Field = ""
	}

	var by []string

	for _, s := range slices.Concat(f.Policies(), d.governing) {
		if s.Generation != 0 {
			by = append(by, fmt.Sprintf("generation %d of %s %q", s.Generation, s.Kind, s.Name))
		}
	}

	if len(by) > 0 {
		out.Message += " (" + strings.Join(by, ", ") + ")"
	}

	return out
}

// decidedBy is what allowed a change.
func decidedBy(policies *policy.Set, enforced enforced, windows windows, f Finding) Source {
	out := Source{Kind: f.kind(), Name: f.Policy}

	switch out.Kind {
	case policy.KindUpgrade:
		out.Generation = windows.generationOfWindow(f.Policy)
	case policy.KindEnforcement:
		name, _, _ := strings.Cut(f.Policy, "/")
		for _, e := range enforced.governing {
			if e.Name() == name {
				out.Generation = e.Generation()
			}
		}
	default:
		out.Generation = generationOfPolicy(policies, windows, f.Policy)
	}

	return out
}

// generationOfPolicy is that of a policy, or of the window of its name whose
// allowance led to a change.
func generationOfPolicy(policies *policy.Set, windows windows, name string) int64 {
	if p := policies.ByName(name); p != nil {
		return p.Generation()
	}

	return windows.generationOfWindow(name)
}

func (windows windows) generationOfWindow(name string) int64 {
	for _, u := range windows.all {
		if u.GetName() == name {
			return u.GetGeneration()
		}
	}

	return 0
}

// nameOwners adds to the last text about each policy whom to ask.
func nameOwners(policies *policy.Set, lacks []Lack) {
	for i, l := range lacks {
		p := policies.ByName(l.Policy)
		if l.ofWindow() || p == nil || p.Spec().Owner == nil ||
			slices.ContainsFunc(lacks[i+1:], func(later Lack) bool { return later.Policy == l.Policy && !later.ofWindow() }) {
			continue
		}

		who := p.Spec().Owner.Name
		if contact := p.Spec().Owner.Contact; contact != "" {
			who += " (" + contact + ")"
		}

		ask := fmt.Sprintf("ask %s about policy %q", who, l.Policy)
		if l.Fix != "" {
			ask = l.Fix + "; " + ask
		}

		lacks[i].Fix = ask
	}
}

// lackingGeneration is the generation of the policy, or window, that lacks
// something.
func lackingGeneration(policies *policy.Set, windows windows, l Lack) int64 {
	if l.ofWindow() {
		return windows.generationOfWindow(l.Policy)
	}

	if p := policies.ByName(l.Policy); p != nil {
		return p.Generation()
	}

	for _, b := range policies.Broken() {
		if b.Name == l.Policy {
			return b.Generation
		}
	}

	return 0
}

// attest notes the values that were captured on the way to a change, and from the
// object itself.
func (s *stamped) attest(hops ...v1alpha1.Hop) {
	for i := range hops {
		if len(hops[i].Attestations) > 0 {
			s.attestations = policy.MergeAttestations(s.attestations, hops[i].Attestations)
		}
	}
}

// attestLead notes what the policies about an unallowed change capture, or about
// one that leaves no trace: who asks with a ticket is to be found by it, though it
// was of no use.
func attestLead(o objects, policies *policy.Set, findings []Finding, s *stamped) {
	lead, ok := lead(findings)
	if !ok || lead.Verdict == Ungoverned || lead.Verdict == Allowed && s.attestations != nil {
		return
	}

	if lead.Verdict == Allowed {
		s.attest(lead.cause.trace...)
	}

	u := cmp.Or(o.Asked, o.target())

	for _, p := range policies.For(o.groupKind()) {
		if len(p.Spec().Match.Capture) > 0 && p.Covers(lead.Change) {
			s.attest(v1alpha1.Hop{Attestations: p.Attestations(u.Object)})
		}
	}
}
