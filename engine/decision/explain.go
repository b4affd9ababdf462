// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/message"
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
				"excludes %s, a part of %s", change.Text(strings.Join(excluded, ", "), maxFields), c.Field)})
			said = "and "
		}

		if !x.mayInitiate(p) {
			l := Lack{Policy: p.Name(), What: policy.LackSubject, Text: said + x.lackingSubject(p)}
			if err := x.judge.permissions.failed; p.Permission() != "" && err != nil && !errors.Is(err, errTooMany) {
				l.Short = said + authorizerAway
			}

			out, said = append(out, l), "and "
		}

		if v := x.evaluate(p); !v.Met {
			l := Lack{Policy: p.Name(), What: v.Kind, Text: said + v.Missing}
			if v.Short != "" {
				l.Short = said + v.Short
			}

			out, said = append(out, l), "and "
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
			"policy %q allows no one to change %s of %s", list[i].Name(), c.Field, x.groupKind().Kind)}
	}

	if x.unnamed(c) {
		return Lack{
			What: policy.LackInitiator, Text: "no policy allows anyone to change it",
			Fix: "revert it, or ask for an AllowancePolicy",
		}
	}

	return Lack{
		What: policy.LackPolicy, Text: fmt.Sprintf("no policy about %s names %s", x.groupKind().Kind, c.Field),
		Fix: "ask for an AllowancePolicy",
	}
}

// lackingGrant says what deleting lacks whose parent is deleted or gone.
func (x explainer) lackingGrant() Lack {
	switch {
	case x.otherXR:
		return Lack{What: policy.LackParent, Text: "its Claim is not bound to it"}
	case x.Operation != OperationDelete:
		return Lack{What: policy.LackParent, Text: "its parent is gone"}
	case x.ParentGone:
		return Lack{What: policy.LackParent, Text: "its parent is gone, and nobody with permission deleted that"}
	case x.withNamespace && x.staysInNamespace():
		return x.lackingInNamespace()
	default:
		return Lack{What: policy.LackParent, Text: fmt.Sprintf(
			"%s %q is being deleted by someone without permission to delete what is below it", x.Parent.GetKind(), resource.Name(x.Parent))}
	}
}

// lackingAllowance says why the parent allows nothing, and which policies would.
// Those that are about something else are left out where one that nearly allows it
// is reported.
func (x explainer) lackingAllowance(c change.Change, reported bool) []Lack {
	parent := fmt.Sprintf("%s %q", x.Parent.GetKind(), resource.Name(x.Parent))

	if x.staysWithClaim() {
		return []Lack{{What: policy.LackParent, Text: fmt.Sprintf(
			"%s would recreate it, and managed resources would be orphaned", parent), Fix: "delete " + parent + " instead"}}
	}

	for _, a := range x.allowances {
		if allowance.Covers(a, x.groupKind(), c) {
			return []Lack{x.unusable(a, c, parent)}
		}
	}

	if out := x.giving(c); len(out) > 0 {
		return out
	}

	add := fmt.Sprintf("add an AllowancePolicy that allows %s %s", x.groupKind().Kind, c.Pattern())
	if x.byPipeline() {
		add = forUpgrade
	}

	near := x.lackingGroup(c)
	if reported || len(near) > 0 {
		return near
	}

	none := fmt.Sprintf("no policy about %s allows it", x.Parent.GetKind())

	switch some := x.partial(); {
	case len(some) == 0:
		return []Lack{{What: policy.LackPolicy, Text: none, Fix: add}}
	case len(some) > 1, c.Field == v1alpha1.MutationCreate, c.Field == v1alpha1.MutationDelete: // None is near.
		return []Lack{{Policy: some[0].Name(), What: policy.LackField, Text: none, Fix: add}}
	default:
		return []Lack{{
			Policy: some[0].Name(), What: policy.LackField, Text: fmt.Sprintf(
				"policy %q allows only %s of %s", some[0].Name(), strings.Join(x.mutations(some[0]), ", "), x.groupKind().Kind),
			Fix: add, Short: fmt.Sprintf("policy %q does not allow it", some[0].Name()),
		}}
	}
}

// partial are the policies about the parent's kind that allow something of the object's kind.
func (x explainer) partial() []*policy.Policy {
	var out []*policy.Policy

	for _, p := range x.Policies.For(x.Parent.GroupVersionKind().GroupKind()) {
		if x.gives(p, nil) {
			out = append(out, p)
		}
	}

	return out
}

// giving are the policies about the parent's kind that would give an allowance for a
// change: each of them, as whoever changed the parent was warned of each.
func (x explainer) giving(c change.Change) []Lack {
	var out []Lack

	for _, p := range x.Policies.For(x.Parent.GroupVersionKind().GroupKind()) {
		if !x.gives(p, &c) {
			continue
		}

		out = append(out, Lack{
			Policy: p.Name(), What: policy.LackCause, Text: fmt.Sprintf("policy %q allows it only %s", p.Name(), trigger(p)) + x.opensNoGate(p, c),
			Short: fmt.Sprintf("policy %q does not allow it now", p.Name()),
		})
	}

	if n := len(out); n > 0 && x.byPipeline() {
		out[n-1].Fix = forUpgrade
	}

	return out
}

const forUpgrade = "for a change of the Composition or a function, add an UpgradeAllowance"

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

		return Lack{
			Policy: a.Policy, What: policy.LackEarlier, Text: fmt.Sprintf(
				"pending since %s, before %s of %s allowed it", allowance.DescribeID(since.At), allowance.DescribeID(a.ID), parent),
			Fix: "approve it", Short: "pending since " + allowance.DescribeID(since.At),
		}
	case x.perhapsEdited(a, c):
		return x.perhapsOf(a, parent, ofEdit)
	case x.perhapsRevised(a, c):
		return x.perhapsOf(a, parent, ofUpdate)
	case x.premature(a):
		return Lack{Policy: a.Policy, What: policy.LackParent, Text: fmt.Sprintf(
			"%s allows it only while %s's deletion of it is in progress", parent, a.Initiator)}
	case x.consumed(a, c):
		return Lack{
			Policy: a.Policy, What: policy.LackConsumed, Text: fmt.Sprintf(
				"the allowance of %s (policy %q, generation %d) is used up", parent, a.Policy, a.Generation) + x.opensNoGate(p, c),
			Short: "its allowance is used up",
		}
	case p == nil:
		return Lack{
			Policy: a.Policy, What: policy.LackPolicy, Text: fmt.Sprintf("policy %q is not in force any more", a.Policy),
			Fix: fmt.Sprintf("apply it again, or change %s again", parent),
		}
	case !x.stillGives(p, a, c):
		return Lack{
			Policy: a.Policy, What: policy.LackPolicy, Text: fmt.Sprintf("policy %q no longer allows it", a.Policy),
			Fix: fmt.Sprintf("let the policy allow it, or change %s again", parent),
		}
	default:
		return Lack{Policy: a.Policy, What: policy.LackSubject, Text: fmt.Sprintf("policy %q: ", a.Policy) +
			onlySome(policy.Describe(p.Spec().Subjects, func(s v1alpha1.Subject) bool { return !s.MayInitiate }), x.User.Name)}
	}
}

// What a change may follow from, and what to do then.
const (
	ofEdit   = "the edit"
	ofUpdate = "an update of the Composition"
)

// perhapsOf says that a change may follow from something else than what gave an allowance.
func (x explainer) perhapsOf(a v1alpha1.Allowance, parent, what string) Lack {
	out := Lack{
		Policy: a.Policy, What: policy.LackEarlier, Text: fmt.Sprintf(
			"%s of %s allows it, but it may come from %s", allowance.DescribeID(a.ID), parent, what),
		Fix: "approve it", Short: "it may come from " + what,
	}
	if what == ofEdit {
		out.Fix = "revert the edit, or approve it"
	}

	return out
}

// opensNoGate says so of a policy that allows a change behind a gate without External Update; empty of any other.
func (x explainer) opensNoGate(p *policy.Policy, c change.Change) string {
	if p == nil || !x.gated || !goesOut(c) || opensGate(p, letsOut) {
		return ""
	}

	return ", but not External Update, which opens its gate"
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

	out := "after an allowed " + strings.Join(ways(spec.Match.Fields, "change of ", "creation", "deletion"), " or ")
	if policy.HasInitiators(spec) {
		who := mayInitiateBy(p) + " " + strings.Join(ways(spec.Match.Fields, "changes ", "creates it", "deletes it"), " or ")

		if n := p.RequiredApprovals(); n > 0 {
			out += fmt.Sprintf(", or with the approval of %s when %s", others(n), who)
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
			out = append(out, g.warning(f, g.effect(f)))
		}
	}

	if g.Operation == OperationDelete && g.allowed() && resource.IsManaged(g.Old) {
		if why := gate.Kept(g.Old); why != "" {
			out = append(out, fmt.Sprintf("%s %q: its external object remains: %s", g.groupKind().Kind, resource.Name(g.Old), why))
		}
	}

	return append(out, g.editWarnings()...)
}

// warning says what becomes of an unallowed change, why, and what to do about it, as far as there is room.
func (g *judged) warning(f Finding, effect string) string {
	head, why := g.title()+": "+effect, f.Why()
	if len(why) == 0 {
		return message.First(head)
	}

	fix := ""

	if i := slices.IndexFunc(f.Lacks, func(l Lack) bool { return l.Fix != "" }); i >= 0 {
		fix = sentence(f.Lacks[i].Fix)
	}

	if g.orphansBelow(f.Change) {
		fix = g.listBelow()
	}

	head += ": "
	brief, command := f.Briefly(), "kubectl kausality explain "+resource.Argument(g.target())

	if f.Change.Field == v1alpha1.MutationCreate { // There is nothing to explain yet.
		command = ""
	}

	more := ""
	if n := len(why) - 1; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}

	return message.First(
		message.Then(head+strings.Join(why, "; "), fix), message.Then(head+why[0]+more, fix), message.Then(head+why[0]+more, command),
		message.Then(head+strings.Join(brief, "; "), command), message.Then(head+brief[0]+more, command),
		head+why[0]+more, head+brief[0]+more,
		head+message.Join(why, message.Most-utf8.RuneCountInString(head)))
}

// effect says what becomes of an unallowed change.
func (g *judged) effect(f Finding) string {
	c := f.Change

	switch {
	case g.action == v1alpha1.ActionHold && g.Operation == OperationUpdate:
		h := HeldChange(f)
		h.From, h.To = message.Cut(h.From, maxShown), message.Cut(h.To, maxShown)

		return "change held: " + Describe(h)
	case g.orphansBelow(c):
		return "deleted, and its managed resources are orphaned"
	case c.Field == v1alpha1.MutationCreate:
		return "created, though not allowed"
	case c.Field == v1alpha1.MutationDelete && resource.IsManaged(g.Old):
		return "deletion not allowed" // A guard may refuse it.
	case c.Field == v1alpha1.MutationDelete:
		return "deleted, though not allowed"
	case g.root():
		return c.Field + " is saved but will not be applied"
	default:
		return fmt.Sprintf("change of %s not allowed", c.Field)
	}
}

// maxShown limits the characters of a value in a warning.
const maxShown = 24

// orphansBelow reports whether a change is the deletion of a Claim or XR, which orphans its managed resources unless it is allowed.
func (g *judged) orphansBelow(c change.Change) bool {
	return c.Field == v1alpha1.MutationDelete && g.root() && (resource.IsClaim(g.Old) || resource.IsComposite(g.Old))
}

// listBelow is the command that lists the managed resources of a Claim or XR.
func (g *judged) listBelow() string {
	label := "crossplane.io/composite"
	if resource.IsClaim(g.Old) {
		label = "crossplane.io/claim-name"
	}

	return fmt.Sprintf("kubectl get managed -A -l %s=%s", label, g.Old.GetName())
}

// Describe says what is held, without why.
func Describe(h v1alpha1.HeldChange) string {
	return fmt.Sprintf("%s (%s → %s)", h.Field, orUnset(h.From), orUnset(h.To))
}

// DescribePassed says what of an unallowed change was made, without why.
func DescribePassed(h v1alpha1.HeldChange) string {
	return fmt.Sprintf("%s is changed from %s to %s", h.Field, orUnset(h.From), orUnset(h.To))
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

// sentence begins a text as one, unless that is a command.
func sentence(text string) string {
	if strings.HasPrefix(text, "kubectl ") {
		return text
	}

	return strings.ToUpper(text[:1]) + text[1:]
}

// onlySome says who may do something that a user may not, both as text.
func onlySome(who, user string) string {
	if who == policy.Nobody {
		return "no one may"
	}

	return fmt.Sprintf("only %s may, not %s", who, user)
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
	return fmt.Sprintf("only Kausality writes annotation %s: remove it from the manifest. To allow a change, add an AllowancePolicy",
		strings.Join(keys, ", "))
}

// keptMessage says that an annotation of ours keeps its value, though somebody
// wrote another one beside other changes.
func keptMessage(u *unstructured.Unstructured, key string) string {
	return fmt.Sprintf("%s %q: annotation %s is unchanged: only Kausality writes it", u.GetKind(), resource.Name(u), key)
}
