// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lack says what an unallowed change lacks: of each policy, binding, window and edit that comes near to it, why it is
// not enough, and what to do.
//
// Its files:
//   - lack.go: the list of reasons, nearest first ([Of]): initiator, policy, unusable allowance, parent or namespace gone;
//     fields of a root that no policy names ([Unnamed])
//   - binding.go: why a user may not initiate by a policy, who may, and what each AllowanceBinding lacks
//   - edit.go: an unallowed edit of the parent, a change by hand of the object, missing approvals
//   - nearmiss.go: policies that do not compile or name another API group; UpgradeAllowances that ended or are suspended ([NotInForce])
package lack

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/grant"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Of says what it would take to allow a change, nearest first.
func Of(in *input.Inputs, c change.Change) []finding.Lack {
	broken := lackingBroken(in.Objects, in.Authority.Policies, c)
	out := slices.Concat(lackingByHand(in.Objects, c), lackingEdits(in.Objects, in.Authority.Policies, in.Above, in.Windows, c), broken,
		lackingInitiator(in.Objects, in.Manner, in.Authority, in.Enforced, in.External, c))

	switch {
	case in.Objects.ParentGone || in.Objects.Operation == request.OperationDelete && !in.Objects.Root && resource.Deleting(in.Objects.Parent):
		out = append(out, lackingGrant(in.Objects, in.Writer))
	case !in.Objects.Root:
		out = append(out, lackingAllowance(in, c, len(broken) > 0)...)
	case len(out) == 0:
		out = append(lackingGroup(in.Objects, in.Authority.Policies, c), lackingAnybody(in.Objects, in.Writer, in.Authority, in.Enforced, c))
	}

	return slices.Concat(out, lackingWindow(in.Objects, in.Writer, in.Windows, in.Now, c))
}

// lackingInitiator says why no policy about the object's kind lets the
// user start a chain.
func lackingInitiator(
	o request.Objects, how request.Manner, auth *authority.Authority, enforced input.Enforced, outside request.External,
	c change.Change,
) []finding.Lack {
	var out []finding.Lack

	for _, p := range auth.Policies.For(o.GroupKind()) {
		if !p.Names(c) || !policy.HasInitiators(p.Spec()) {
			continue
		}

		said := fmt.Sprintf("policy %q: ", p.Name())

		if excluded := p.Excluded(c); len(excluded) > 0 {
			out = append(out, finding.Lack{Policy: p.Name(), What: policy.LackField, Text: said + fmt.Sprintf(
				"excludes %s, a part of %s", change.Text(strings.Join(excluded, ", "), finding.MaxFields), c.Field)})
			said = "and "
		}

		if !auth.MayInitiate(p) {
			l := finding.Lack{Policy: p.Name(), What: policy.LackSubject, Text: said + LackingSubject(auth, p)}
			if err := auth.Ledger.Asked.Failed; p.Permission() != "" && err != nil && !errors.Is(err, authority.ErrTooMany) {
				l.Short = said + authority.AuthorizerAway
			}

			out, said = append(out, l), "and "
		}

		if v := auth.Evaluate(p); !v.Met {
			l := finding.Lack{Policy: p.Name(), What: v.Kind, Text: said + v.Missing}
			if v.Short != "" {
				l.Short = said + v.Short
			}

			out, said = append(out, l), "and "
		}

		if auth.WaitsForApproval(p, c) {
			out = append(out, lackingApproval(o, how, enforced, outside, p, c, said))
		}
	}

	return out
}

// lackingAnybody says that nobody may initiate a change of a root: because a
// policy says so, or none says who may.
func lackingAnybody(
	o request.Objects, by request.Writer, auth *authority.Authority, enforced input.Enforced, c change.Change,
) finding.Lack {
	list := auth.Policies.For(o.GroupKind())

	if i := slices.IndexFunc(list, func(p *policy.Policy) bool { return auth.Forbids(p, c) }); i >= 0 {
		return finding.Lack{Policy: list[i].Name(), What: policy.LackInitiator, Text: fmt.Sprintf(
			"policy %q allows no one to change %s of %s", list[i].Name(), c.Field, o.GroupKind().Kind)}
	}

	if Unnamed(o, by, auth, enforced, c) {
		return finding.Lack{
			What: policy.LackInitiator, Text: "no policy allows anyone to change it",
			Fix: "revert it, or ask for an AllowancePolicy",
		}
	}

	return finding.Lack{
		What: policy.LackPolicy, Text: fmt.Sprintf("no policy about %s names %s", o.GroupKind().Kind, c.Field),
		Fix: "ask for an AllowancePolicy",
	}
}

// lackingGrant says what deleting lacks whose parent is deleted or gone.
func lackingGrant(o request.Objects, by request.Writer) finding.Lack {
	switch {
	case o.OtherXR:
		return finding.Lack{What: policy.LackParent, Text: "its Claim is not bound to it"}
	case o.Operation != request.OperationDelete:
		return finding.Lack{What: policy.LackParent, Text: "its parent is gone"}
	case o.ParentGone:
		return finding.Lack{What: policy.LackParent, Text: "its parent is gone, and nobody with permission deleted that"}
	case o.WithNamespace && request.StaysInNamespace(o, by):
		return lackingInNamespace(o)
	default:
		return finding.Lack{What: policy.LackParent, Text: fmt.Sprintf(
			"%s %q is being deleted by someone without permission to delete what is below it", o.Parent.GetKind(), resource.Name(o.Parent))}
	}
}

// lackingAllowance says why the parent allows nothing, and under which edits of it which policies would; where the change comes of a
// Composition, that an UpgradeAllowance is what it takes. Those that are about something else are left out where one that nearly allows it
// is reported.
func lackingAllowance(in *input.Inputs, c change.Change, reported bool) []finding.Lack {
	parent := fmt.Sprintf("%s %q", in.Objects.Parent.GetKind(), resource.Name(in.Objects.Parent))

	if request.StaysWithClaim(in.Objects, in.Writer) {
		return []finding.Lack{{What: policy.LackParent, Text: fmt.Sprintf(
			"%s would recreate it, and managed resources would be orphaned", parent), Fix: "delete " + parent + " instead"}}
	}

	for _, a := range in.Above.Allowances {
		if allowance.Covers(a, in.Objects.GroupKind(), c) {
			return []finding.Lack{Unusable(in, a, c, parent)}
		}
	}

	if out := giving(in.Objects, in.Writer, in.Manner, in.Authority.Policies, in.Above, in.External, c); len(out) > 0 {
		return out
	}

	add := fmt.Sprintf("add an AllowancePolicy that allows %s %s", in.Objects.GroupKind().Kind, c.Pattern())
	if byPipeline(in.Objects, in.Writer, in.Manner, in.Above) {
		add = forUpgrade
	}

	near := lackingGroup(in.Objects, in.Authority.Policies, c)
	if reported || len(near) > 0 {
		return near
	}

	none := fmt.Sprintf("no policy about %s allows it", in.Objects.Parent.GetKind())

	switch some := partial(in.Objects, in.Authority.Policies); {
	case len(some) == 0:
		return []finding.Lack{{What: policy.LackPolicy, Text: none, Fix: add}}
	case len(some) > 1, c.Field == v1alpha1.MutationCreate, c.Field == v1alpha1.MutationDelete: // None is near.
		return []finding.Lack{{Policy: some[0].Name(), What: policy.LackField, Text: none, Fix: add}}
	default:
		return []finding.Lack{{
			Policy: some[0].Name(), What: policy.LackField, Text: fmt.Sprintf(
				"policy %q allows only %s of %s", some[0].Name(), strings.Join(mutations(in.Objects, some[0]), ", "), in.Objects.GroupKind().Kind),
			Fix: add, Short: fmt.Sprintf("policy %q does not allow it", some[0].Name()),
		}}
	}
}

// partial are the policies about the parent's kind that allow something of the object's kind.
func partial(o request.Objects, policies *policy.Set) []*policy.Policy {
	var out []*policy.Policy

	for _, p := range policies.For(o.Parent.GroupVersionKind().GroupKind()) {
		if GivesAllowance(o, p, nil) {
			out = append(out, p)
		}
	}

	return out
}

// giving are the policies about the parent's kind that would give an allowance for a
// change: each of them, as whoever changed the parent was warned of each.
func giving(
	o request.Objects, by request.Writer, how request.Manner, policies *policy.Set, above *input.Above, outside request.External,
	c change.Change,
) []finding.Lack {
	var out []finding.Lack

	for _, p := range policies.For(o.Parent.GroupVersionKind().GroupKind()) {
		if !GivesAllowance(o, p, &c) {
			continue
		}

		out = append(out, finding.Lack{
			Policy: p.Name(), What: policy.LackCause,
			Text:  fmt.Sprintf("policy %q allows it only %s", p.Name(), trigger(p)) + opensNoGate(outside, p, c),
			Short: fmt.Sprintf("policy %q does not allow it now", p.Name()),
		})
	}

	if n := len(out); n > 0 && byPipeline(o, by, how, above) {
		out[n-1].Fix = forUpgrade
	}

	return out
}

const forUpgrade = "for a change of the Composition or a function, add an UpgradeAllowance"

// byPipeline reports whether a pipeline asks for the change of what an XR composes: no
// edit of the XR is known that it might follow from.
func byPipeline(o request.Objects, by request.Writer, how request.Manner, above *input.Above) bool {
	return request.Composes(o, how, o.Parent) && by.IsCrossplane() && !resource.IsClaim(o.Parent) && len(above.Edited) == 0
}

// Unusable says why an allowance of the parent that covers the change does not
// serve.
func Unusable(in *input.Inputs, a v1alpha1.Allowance, c change.Change, parent string) finding.Lack {
	p := in.Authority.Policies.ByName(a.Policy)

	switch {
	case grant.Bars(in.Objects, in.Above, in.Places, a, c):
		since, _ := input.HeldSince(in.Objects, in.Above, in.Places, c)
		if since.Edited && since.Of == "" {
			return perhapsOf(a, parent, ofUpdate)
		}

		if since.Edited {
			return perhapsOf(a, parent, ofEdit)
		}

		return finding.Lack{
			Policy: a.Policy, What: policy.LackEarlier, Text: fmt.Sprintf(
				"pending since %s, before %s of %s allowed it", allowance.DescribeID(since.At), allowance.DescribeID(a.ID), parent),
			Fix: "approve it", Short: "pending since " + allowance.DescribeID(since.At),
		}
	case input.PerhapsEdited(in.Objects, in.Manner, in.Authority.Policies, in.Above, in.Places, in.Desired, a, c):
		return perhapsOf(a, parent, ofEdit)
	case input.PerhapsRevised(in.Objects, in.Manner, in.Places, in.Desired, a, c):
		return perhapsOf(a, parent, ofUpdate)
	case grant.Premature(in.Objects, a):
		return finding.Lack{Policy: a.Policy, What: policy.LackParent, Text: fmt.Sprintf(
			"%s allows it only while %s's deletion of it is in progress", parent, a.Initiator)}
	case grant.Consumed(in.Objects, in.Manner, in.Above, in.Now, a, c):
		return finding.Lack{
			Policy: a.Policy, What: policy.LackConsumed, Text: fmt.Sprintf(
				"the allowance of %s (policy %q, generation %d) is used up", parent, a.Policy, a.Generation) + opensNoGate(in.External, p, c),
			Short: "its allowance is used up",
		}
	case p == nil:
		return finding.Lack{
			Policy: a.Policy, What: policy.LackPolicy, Text: fmt.Sprintf("policy %q is not in force any more", a.Policy),
			Fix: fmt.Sprintf("apply it again, or change %s again", parent),
		}
	case !grant.StillGives(in.Objects, p, a, c):
		return finding.Lack{
			Policy: a.Policy, What: policy.LackPolicy, Text: fmt.Sprintf("policy %q no longer allows it", a.Policy),
			Fix: fmt.Sprintf("let the policy allow it, or change %s again", parent),
		}
	default:
		return finding.Lack{Policy: a.Policy, What: policy.LackSubject, Text: fmt.Sprintf("policy %q: ", a.Policy) +
			authority.OnlySome(policy.Describe(p.Spec().Subjects, func(s v1alpha1.Subject) bool { return !s.MayInitiate }), in.Writer.User.Name)}
	}
}

// What a change may follow from, and what to do then.
const (
	ofEdit   = "the edit"
	ofUpdate = "an update of the Composition"
)

// perhapsOf says that a change may follow from something else than what gave an allowance.
func perhapsOf(a v1alpha1.Allowance, parent, what string) finding.Lack {
	out := finding.Lack{
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
func opensNoGate(outside request.External, p *policy.Policy, c change.Change) string {
	if p == nil || !outside.Gated || !grant.GoesOut(c) || grant.OpensGate(p, grant.LetsOut) {
		return ""
	}

	return ", but not External Update, which opens its gate"
}

// GivesAllowance reports whether a policy gives an allowance for a change of the object;
// for nil, for any.
func GivesAllowance(o request.Objects, p *policy.Policy, c *change.Change) bool {
	for _, a := range permissionsOf(o, p) {
		if c == nil || allowance.Covers(a, o.GroupKind(), *c) {
			return true
		}
	}

	return false
}

// permissionsOf are what a policy allows of the object's kind.
func permissionsOf(o request.Objects, p *policy.Policy) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	gk := o.GroupKind()

	for _, perm := range p.Spec().Allow {
		if OfKind(perm, gk) {
			out = authority.Expand(out, perm, v1alpha1.Allowance{})
		}
	}

	return out
}

// OfKind reports whether a permission is about children of a kind.
func OfKind(perm v1alpha1.Permission, gk schema.GroupKind) bool {
	return perm.Relation != v1alpha1.RelationExternal && perm.Kind == gk.Kind && (perm.APIGroup == "" || perm.APIGroup == gk.Group)
}

func mutations(o request.Objects, p *policy.Policy) []string {
	list := permissionsOf(o, p)
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
		who := authority.MayInitiateBy(p) + " " + strings.Join(ways(spec.Match.Fields, "changes ", "creates it", "deletes it"), " or ")

		if n := p.RequiredApprovals(); n > 0 {
			out += fmt.Sprintf(", or with the approval of %s when %s", authority.Others(n), who)
		} else {
			out = "when " + who
		}
	}

	if excluded := spec.Match.ExcludeFields; len(excluded) > 0 {
		out += " (but not " + change.Text(strings.Join(excluded, ", "), finding.MaxFields) + ")"
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

// Unnamed reports whether a change is of a field of a root of which no policy says
// who may initiate it, though one does of others. Where every Enforcement that is
// about the object leaves such fields alone, none is.
func Unnamed(o request.Objects, by request.Writer, auth *authority.Authority, enforced input.Enforced, c change.Change) bool {
	if o.Operation != request.OperationUpdate || c.Metadata() || !o.Root || by.CarriesOut() || auth.DecidesWho(c) {
		return false
	}

	if len(enforced.Governing) > 0 && !slices.ContainsFunc(enforced.Governing,
		func(e *enforcement.Enforcement) bool { return !e.IgnoresUnnamed() }) {
		return false
	}

	return HasInitiators(auth.Policies, o.GroupKind())
}

// HasInitiators reports whether a policy says who may initiate changes of objects of
// the kind.
func HasInitiators(policies *policy.Set, kind schema.GroupKind) bool {
	return slices.ContainsFunc(policies.For(kind), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec())
	})
}

// lackingInNamespace says what it takes for an object to go with its namespace,
// or without it.
func lackingInNamespace(o request.Objects) finding.Lack {
	object := fmt.Sprintf("%s %q", o.GroupKind().Kind, resource.Name(o.Old))

	return finding.Lack{
		What: policy.LackParent,
		Text: fmt.Sprintf("Namespace %q is being deleted%s, without permission to delete %s",
			resource.Name(o.Parent), request.DeletedBy(o), object),
		Fix: fmt.Sprintf("ask someone with permission to delete %s, or add an AllowancePolicy about the deletion of a Namespace "+
			"that allows %s delete", object, o.GroupKind().Kind),
	}
}
