// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func inObject(u *unstructured.Unstructured, err error) error {
	return fmt.Errorf("%s %q: %w", u.GetKind(), resource.Name(u), err)
}

// An explainer says what unallowed changes lack.
type explainer struct{ *judge }

// lacks says what it would take to allow a change, nearest first.
func (x explainer) lacks(c change.Change) []Lack {
	broken := x.lackingBroken(c)
	out := slices.Concat(x.lackingByHand(c), x.lackingEdits(c), broken, x.lackingInitiator(c))

	switch {
	case x.ParentGone || x.Operation == OperationDelete && !x.root() && resource.Deleting(x.Parent):
		out = append(out, x.lackingGrant())
	case !x.root():
		out = append(out, x.lackingAllowance(c, len(broken) > 0)...)
	case len(out) == 0:
		out = append(x.lackingGroup(c), x.lackingAnybody(c))
	}

	return slices.Concat(out, x.lackingWindow(c))
}

// lackingInitiator says why no policy about the object's kind lets the
// user start a chain.
func (x explainer) lackingInitiator(c change.Change) []Lack {
	var out []Lack

	for _, p := range x.Policies.For(x.groupKind()) {
		if !p.Names(c) || !policy.HasInitiators(p.Spec()) {
			continue
		}

		said := fmt.Sprintf("policy %q: ", p.Name())

		if excluded := p.Excluded(c); len(excluded) > 0 {
			out = append(out, Lack{Policy: p.Name(), What: policy.LackField, Text: said + fmt.Sprintf(
				"it is not about %s, which is part of %s", change.Text(strings.Join(excluded, ", "), maxFields), c.Field)})
			said = "and "
		}

		if !x.mayInitiate(p) {
			out = append(out, Lack{Policy: p.Name(), What: policy.LackSubject, Text: said + x.lackingSubject(p)})
			said = "and "
		}

		if v := x.evaluate(p); !v.Met {
			out = append(out, Lack{Policy: p.Name(), What: v.Kind, Text: said + v.Missing})
			said = "and "
		}

		if x.waitsForApproval(p, c) {
			out = append(out, x.lackingApproval(p, c, said))
		}
	}

	return out
}

// lackingAnybody says that nobody may initiate a change of a root: because a
// policy says so, or none says who may.
func (x explainer) lackingAnybody(c change.Change) Lack {
	list := x.Policies.For(x.groupKind())

	if i := slices.IndexFunc(list, func(p *policy.Policy) bool { return x.forbids(p, c) }); i >= 0 {
		return Lack{Policy: list[i].Name(), What: policy.LackInitiator, Text: fmt.Sprintf(
			"policy %q says that nobody may change %s of a %s", list[i].Name(), c.Field, x.groupKind().Kind)}
	}

	if x.unnamed(c) {
		return Lack{What: policy.LackInitiator, Text: fmt.Sprintf("no policy lets anybody initiate a change of %s of a %s: "+
			"take it back, or add an AllowancePolicy with a subject that may", c.Field, x.groupKind().Kind)}
	}

	return Lack{What: policy.LackPolicy, Text: fmt.Sprintf(
		"no policy about %s names %s: add an AllowancePolicy that does", x.groupKind().Kind, c.Field)}
}

// lackingGrant says what deleting lacks whose parent is deleted or gone.
func (x explainer) lackingGrant() Lack {
	switch {
	case x.otherXR:
		return Lack{What: policy.LackParent, Text: "its Claim is not bound to it"}
	case x.Operation != OperationDelete:
		return Lack{What: policy.LackParent, Text: "its parent is gone"}
	case x.ParentGone:
		return Lack{What: policy.LackParent, Text: "its parent is gone, and no grant to delete what it stands for was recorded"}
	case x.withNamespace && x.staysInNamespace():
		return Lack{What: policy.LackParent, Text: x.lackingInNamespace()}
	default:
		return Lack{What: policy.LackParent, Text: fmt.Sprintf(
			"%s %q is being deleted, but no grant to delete what it stands for was recorded", x.Parent.GetKind(), resource.Name(x.Parent))}
	}
}

// lackingAllowance says why the parent allows nothing, and which policies would.
// Those that are about something else are left out where one that nearly allows it
// is reported.
func (x explainer) lackingAllowance(c change.Change, reported bool) []Lack {
	parent := fmt.Sprintf("%s %q", x.Parent.GetKind(), resource.Name(x.Parent))

	if x.staysWithClaim() {
		return []Lack{{What: policy.LackParent, Text: fmt.Sprintf(
			"%s would have it recreated, and leave managed resources behind: delete %s instead", parent, parent)}}
	}

	for _, a := range x.allowances {
		if allowance.Covers(a, x.groupKind(), c) {
			return []Lack{x.unusable(a, c, parent)}
		}
	}

	if out := x.giving(c, parent); len(out) > 0 {
		return out
	}

	add := fmt.Sprintf("add an AllowancePolicy that allows %s %s", x.groupKind().Kind, c.Pattern())
	if x.byPipeline() {
		add += ", or, where the Composition or a function asks for it, an UpgradeAllowance"
	}

	near := x.lackingGroup(c)
	if reported || len(near) > 0 {
		return near
	}

	if p := x.nearest(func(p *policy.Policy) bool { return x.gives(p, nil) }); p != nil {
		return []Lack{{Policy: p.Name(), What: policy.LackField, Text: fmt.Sprintf(
			"%s has no allowance for it; policy %q allows of %s only %s: %s",
			parent, p.Name(), x.groupKind().Kind, strings.Join(x.mutations(p), ", "), add)}}
	}

	return []Lack{{What: policy.LackPolicy, Text: fmt.Sprintf(
		"%s has no allowance for it, and no policy about %s gives one: %s", parent, x.Parent.GetKind(), add)}}
}

// giving are the policies about the parent's kind that would give an allowance for a
// change: each of them, as whoever changed the parent was warned of each.
func (x explainer) giving(c change.Change, parent string) []Lack {
	var out []Lack

	said := parent + " has no allowance for it; "

	for _, p := range x.Policies.For(x.Parent.GroupVersionKind().GroupKind()) {
		if !x.gives(p, &c) {
			continue
		}

		out = append(out, Lack{
			Policy: p.Name(), What: policy.LackCause, Text: said + fmt.Sprintf("policy %q gives one %s", p.Name(), trigger(p)) + x.opensNoGate(p, c),
		})
		said = ""
	}

	if n := len(out); n > 0 && x.byPipeline() {
		out[n-1].Text += "; what the Composition or a function asks for takes an UpgradeAllowance"
	}

	return out
}

// byPipeline reports whether a pipeline asks for the change of what an XR composes: no
// edit of the XR is known that it might follow from.
func (x explainer) byPipeline() bool {
	return x.composes(x.Parent) && x.byCrossplane() && !resource.IsClaim(x.Parent) && len(x.edited) == 0
}

// unusable says why an allowance of the parent that covers the change does not
// serve.
func (x explainer) unusable(a v1alpha1.Allowance, c change.Change, parent string) Lack {
	p := x.Policies.ByName(a.Policy)

	switch {
	case x.bars(a, c):
		since, _ := x.heldSince(c)
		if since.Edited && since.Of == "" {
			return x.perhapsOf(a, parent, ofUpdate)
		}

		if since.Edited {
			return x.perhapsOf(a, parent, ofEdit)
		}

		return Lack{Policy: a.Policy, What: policy.LackEarlier, Text: fmt.Sprintf(
			"%s allows it since its %s, and it is held since %s: approve it",
			parent, allowance.DescribeID(a.ID), allowance.DescribeID(since.At))}
	case x.perhapsEdited(a, c):
		return x.perhapsOf(a, parent, ofEdit)
	case x.perhapsRevised(a, c):
		return x.perhapsOf(a, parent, ofUpdate)
	case x.premature(a):
		return Lack{Policy: a.Policy, What: policy.LackParent, Text: fmt.Sprintf(
			"%s allows it while it is being deleted, as %s asked for, and it is not", parent, a.Initiator)}
	case x.consumed(a, c):
		return Lack{Policy: a.Policy, What: policy.LackConsumed, Text: fmt.Sprintf(
			"the allowance of %s (policy %q, generation %d) is consumed", parent, a.Policy, a.Generation) + x.opensNoGate(p, c)}
	case p == nil:
		return Lack{Policy: a.Policy, What: policy.LackPolicy, Text: fmt.Sprintf(
			"%s allows it by policy %q, which is not in force: apply it again, or change %s anew", parent, a.Policy, parent)}
	case !x.stillGives(p, a, c):
		return Lack{Policy: a.Policy, What: policy.LackPolicy, Text: fmt.Sprintf(
			"%s allows it by policy %q, which no longer does: let the policy allow it again, or change %s anew", parent, a.Policy, parent)}
	default:
		return Lack{Policy: a.Policy, What: policy.LackSubject, Text: fmt.Sprintf(
			"%s allows it by policy %q, but user %q may not exercise it (%s may)", parent, a.Policy, x.User.Name,
			policy.Describe(p.Spec().Subjects, func(s v1alpha1.Subject) bool { return !s.MayInitiate }))}
	}
}

// What a change may follow from, and what to do then.
const (
	ofEdit   = "the edit: take that back, or approve it"
	ofUpdate = "an update of its Composition: approve it"
)

// perhapsOf says that a change may follow from something else than what gave an allowance.
func (x explainer) perhapsOf(a v1alpha1.Allowance, parent, what string) Lack {
	return Lack{Policy: a.Policy, What: policy.LackEarlier, Text: fmt.Sprintf(
		"%s allows it since its %s, but it may follow from %s", parent, allowance.DescribeID(a.ID), what)}
}

// opensNoGate says so of a policy that allows a change behind a gate without External Update; empty of any other.
func (x explainer) opensNoGate(p *policy.Policy, c change.Change) string {
	if p == nil || !x.gated || !goesOut(c) || opensGate(p, letsOut) {
		return ""
	}

	return ", without External Update, so that its gate does not open for it: let the policy allow that too"
}

// nearest returns the first policy about the parent's kind for which a
// condition holds; nil if there is none.
func (x explainer) nearest(is func(*policy.Policy) bool) *policy.Policy {
	list := x.Policies.For(x.Parent.GroupVersionKind().GroupKind())

	i := slices.IndexFunc(list, is)
	if i < 0 {
		return nil
	}

	return list[i]
}

// gives reports whether a policy gives an allowance for a change of the object;
// for nil, for any.
func (x explainer) gives(p *policy.Policy, c *change.Change) bool {
	for _, a := range x.permissions(p) {
		if c == nil || allowance.Covers(a, x.groupKind(), *c) {
			return true
		}
	}

	return false
}

// permissions are what a policy allows of the object's kind.
func (x explainer) permissions(p *policy.Policy) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	gk := x.groupKind()

	for _, perm := range p.Spec().Allow {
		if of(perm, gk) {
			out = expand(out, perm, v1alpha1.Allowance{})
		}
	}

	return out
}

// of reports whether a permission is about children of a kind.
func of(perm v1alpha1.Permission, gk schema.GroupKind) bool {
	return perm.Relation != v1alpha1.RelationExternal && perm.Kind == gk.Kind && (perm.APIGroup == "" || perm.APIGroup == gk.Group)
}

func (x explainer) mutations(p *policy.Policy) []string {
	list := x.permissions(p)
	out := make([]string, len(list))

	for i, a := range list {
		out[i] = a.Mutation
	}

	return out
}

// trigger says what has a policy give allowances.
func trigger(p *policy.Policy) string {
	spec := p.Spec()

	out := "once " + strings.Join(ways(spec.Match.Fields, "a change of ", "its creation", "its deletion"), " or ") + " is allowed"
	if policy.HasInitiators(spec) {
		who := mayInitiateBy(p) + " " + strings.Join(ways(spec.Match.Fields, "changes ", "creates it", "deletes it"), " or ")

		if n := p.RequiredApprovals(); n > 0 {
			out += fmt.Sprintf(" by what it follows from, and when %s, this takes the approval of %s", who, others(n))
		} else {
			out = "when " + who
		}
	}

	if excluded := spec.Match.ExcludeFields; len(excluded) > 0 {
		out += " (but not " + change.Text(strings.Join(excluded, ", "), maxFields) + ")"
	}

	if conditions := conditionsOf(&spec.Match); len(conditions) > 0 {
		out += ", where " + strings.Join(conditions, " and ") + " holds"
	}

	return out
}

// ways are those in which an object may change, by what a policy names.
func ways(fields []string, changed, creation, deletion string) []string {
	var named, out []string

	for _, f := range fields {
		switch f {
		case v1alpha1.MutationCreate:
			out = append(out, creation)
		case v1alpha1.MutationDelete:
			out = append(out, deletion)
		default:
			named = append(named, f)
		}
	}

	if len(named) > 0 {
		out = slices.Insert(out, 0, changed+strings.Join(named, " or "))
	}

	return out
}

// conditionsOf are all that must be true of a change, as text: expressions, and
// conditions by their names and messages.
func conditionsOf(match *v1alpha1.Match) []string {
	out := make([]string, 0, len(match.CEL)+len(match.MatchConditions))

	for i, text := range match.CEL {
		text = strconv.Quote(text)
		if i == 0 {
			text = "CEL " + text
		}

		out = append(out, text)
	}

	for _, c := range match.MatchConditions {
		about := cmp.Or(c.Message, "CEL "+strconv.Quote(c.Expression))
		out = append(out, fmt.Sprintf("condition %q (%s)", c.Name, about))
	}

	return out
}

// consequences warn the user of what will not follow from their change, or what of it
// was held. A refusal says it by itself, and Audit reports it in the record alone.
func (g *judged) consequences() []string {
	if g.action == v1alpha1.ActionAudit || g.refuses() {
		return nil
	}

	var out []string

	for _, f := range g.findings {
		if f.Verdict == Unallowed {
			out = append(out, fmt.Sprintf("%s: %s: %s", g.title(), g.effect(f), f.Missing()))
		}
	}

	if g.Operation == OperationDelete && g.allowed() && resource.IsManaged(g.Old) {
		if why := gate.Kept(g.Old); why != "" {
			out = append(out, fmt.Sprintf("%s %q: its external object stays: %s", g.groupKind().Kind, resource.Name(g.Old), why))
		}
	}

	return append(out, g.editWarnings()...)
}

// effect says what becomes of an unallowed change.
func (g *judged) effect(f Finding) string {
	c := f.Change

	switch {
	case g.action == v1alpha1.ActionHold && g.Operation == OperationUpdate:
		return Describe(HeldChange(f))
	case c.Field == v1alpha1.MutationDelete && g.root() && (resource.IsClaim(g.Old) || resource.IsComposite(g.Old)):
		return g.leavesBehind()
	case c.Field == v1alpha1.MutationCreate:
		return "creating it is not allowed"
	case c.Field == v1alpha1.MutationDelete:
		return "deleting it is not allowed"
	case g.root():
		return fmt.Sprintf("the change of %s is stored, but nothing may follow from it", c.Field)
	default:
		return fmt.Sprintf("the change of %s is not allowed", c.Field)
	}
}

// leavesBehind says what a Claim or XR leaves behind that is deleted without a grant,
// and how to have it back. A Claim that is paused makes no XR.
func (g *judged) leavesBehind() string {
	label, again, by := "crossplane.io/composite", "it again", strings.ToLower(g.Old.GetKind())+"/"+g.Old.GetName()
	if resource.IsClaim(g.Old) {
		label, again, by = "crossplane.io/claim-name", "an XR like the one behind it", "XR"
	} else if ns := g.Old.GetNamespace(); ns != "" {
		by += " -n " + ns
	}

	return fmt.Sprintf("it goes, and each managed resource below it stays with its external object "+
		"(kubectl get managed -A -l %s=%s lists them); to have it back, apply %s with the annotation "+
		"crossplane.io/paused: \"true\", and run kubectl kausality adopt KIND/NAME --by %s for each, the last with --resume",
		label, g.Old.GetName(), again, by)
}

// Describe says what is held, without why.
func Describe(h v1alpha1.HeldChange) string {
	return fmt.Sprintf("%s stays %s (asked: %s)", h.Field, orUnset(h.From), orUnset(h.To))
}

// DescribePassed says what of an unallowed change was made, without why.
func DescribePassed(h v1alpha1.HeldChange) string {
	from, to := orUnset(h.From), orUnset(h.To)

	return fmt.Sprintf("%s is changed from %s to %s", h.Field, from, to)
}

// DescribeDrift says what was changed of an external object, see [gate.DriftEntries].
func DescribeDrift(h v1alpha1.HeldChange) string {
	switch {
	case slices.Contains(h.Follows, gate.ActionCreate):
		return "it is gone"
	case h.From == gate.AnotherObject:
		return "it is another object"
	}

	return DescribePassed(v1alpha1.HeldChange{Field: h.Field, From: h.To, To: h.From})
}

func orUnset(s string) string {
	if s == "" {
		return "(unset)"
	}

	return s
}

// maxRefused limits the changes a refusal names; the rest is a count.
const maxRefused = 10

func unallowedMessage(findings []Finding) string {
	var parts []string

	more := 0

	for _, f := range findings {
		switch {
		case f.Verdict != Unallowed:
		case len(parts) == maxRefused:
			more++
		default:
			parts = append(parts, fmt.Sprintf("%s: %s", f.Change.Field, f.Missing()))
		}
	}

	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}

	return refusedAs(findings) + strings.Join(parts, "; ")
}

func forgedMessage(keys []string) string {
	return fmt.Sprintf("only Kausality writes the annotation %s: take it out of your manifest and apply again; "+
		"to allow a change, add an AllowancePolicy", strings.Join(keys, ", "))
}

// keptMessage says that an annotation of ours keeps its value, though somebody
// wrote another one beside other changes.
func keptMessage(u *unstructured.Unstructured, key string) string {
	return fmt.Sprintf("%s %q: the annotation %s stays as it was, for only Kausality writes it", u.GetKind(), resource.Name(u), key)
}
