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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func inObject(u *unstructured.Unstructured, err error) error {
	return fmt.Errorf("%s %q: %w", u.GetKind(), resource.Name(u), err)
}

// lacks says what it would take to allow a change, nearest first.
func lacks(in *inputs, c change.Change) []Lack {
	broken := lackingBroken(in.o, in.auth.Policies, c)
	out := slices.Concat(lackingByHand(in.o, c), lackingEdits(in.o, in.auth.Policies, in.above, in.windows, c), broken,
		lackingInitiator(in.o, in.how, in.auth, in.enforced, in.outside, c))

	switch {
	case in.o.ParentGone || in.o.Operation == OperationDelete && !in.o.Root && resource.Deleting(in.o.Parent):
		out = append(out, lackingGrant(in.o, in.by))
	case !in.o.Root:
		out = append(out, lackingAllowance(in, c, len(broken) > 0)...)
	case len(out) == 0:
		out = append(lackingGroup(in.o, in.auth.Policies, c), lackingAnybody(in.o, in.by, in.auth, in.enforced, c))
	}

	return slices.Concat(out, lackingWindow(in.o, in.by, in.windows, in.now, c))
}

// lackingInitiator says why no policy about the object's kind lets the
// user start a chain.
func lackingInitiator(o objects, how manner, auth *authority, enforced enforced, outside outside, c change.Change) []Lack {
	var out []Lack

	for _, p := range auth.Policies.For(o.groupKind()) {
		if !p.Names(c) || !policy.HasInitiators(p.Spec()) {
			continue
		}

		said := fmt.Sprintf("policy %q: ", p.Name())

		if excluded := p.Excluded(c); len(excluded) > 0 {
			out = append(out, Lack{Policy: p.Name(), What: policy.LackField, Text: said + fmt.Sprintf(
				"excludes %s, a part of %s", change.Text(strings.Join(excluded, ", "), maxFields), c.Field)})
			said = "and "
		}

		if !auth.mayInitiate(p) {
			l := Lack{Policy: p.Name(), What: policy.LackSubject, Text: said + lackingSubject(auth, p)}
			if err := auth.ledger.asked.failed; p.Permission() != "" && err != nil && !errors.Is(err, errTooMany) {
				l.Short = said + authorizerAway
			}

			out, said = append(out, l), "and "
		}

		if v := auth.evaluate(p); !v.Met {
			l := Lack{Policy: p.Name(), What: v.Kind, Text: said + v.Missing}
			if v.Short != "" {
				l.Short = said + v.Short
			}

			out, said = append(out, l), "and "
		}

		if auth.waitsForApproval(p, c) {
			out = append(out, lackingApproval(o, how, enforced, outside, p, c, said))
		}
	}

	return out
}

// lackingAnybody says that nobody may initiate a change of a root: because a
// policy says so, or none says who may.
func lackingAnybody(o objects, by writer, auth *authority, enforced enforced, c change.Change) Lack {
	list := auth.Policies.For(o.groupKind())

	if i := slices.IndexFunc(list, func(p *policy.Policy) bool { return auth.forbids(p, c) }); i >= 0 {
		return Lack{Policy: list[i].Name(), What: policy.LackInitiator, Text: fmt.Sprintf(
			"policy %q allows no one to change %s of %s", list[i].Name(), c.Field, o.groupKind().Kind)}
	}

	if unnamed(o, by, auth, enforced, c) {
		return Lack{
			What: policy.LackInitiator, Text: "no policy allows anyone to change it",
			Fix: "revert it, or ask for an AllowancePolicy",
		}
	}

	return Lack{
		What: policy.LackPolicy, Text: fmt.Sprintf("no policy about %s names %s", o.groupKind().Kind, c.Field),
		Fix: "ask for an AllowancePolicy",
	}
}

// lackingGrant says what deleting lacks whose parent is deleted or gone.
func lackingGrant(o objects, by writer) Lack {
	switch {
	case o.OtherXR:
		return Lack{What: policy.LackParent, Text: "its Claim is not bound to it"}
	case o.Operation != OperationDelete:
		return Lack{What: policy.LackParent, Text: "its parent is gone"}
	case o.ParentGone:
		return Lack{What: policy.LackParent, Text: "its parent is gone, and nobody with permission deleted that"}
	case o.WithNamespace && staysInNamespace(o, by):
		return lackingInNamespace(o)
	default:
		return Lack{What: policy.LackParent, Text: fmt.Sprintf(
			"%s %q is being deleted by someone without permission to delete what is below it", o.Parent.GetKind(), resource.Name(o.Parent))}
	}
}

// lackingAllowance says why the parent allows nothing, and which policies would.
// Those that are about something else are left out where one that nearly allows it
// is reported.
func lackingAllowance(in *inputs, c change.Change, reported bool) []Lack {
	parent := fmt.Sprintf("%s %q", in.o.Parent.GetKind(), resource.Name(in.o.Parent))

	if staysWithClaim(in.o, in.by) {
		return []Lack{{What: policy.LackParent, Text: fmt.Sprintf(
			"%s would recreate it, and managed resources would be orphaned", parent), Fix: "delete " + parent + " instead"}}
	}

	for _, a := range in.above.allowances {
		if allowance.Covers(a, in.o.groupKind(), c) {
			return []Lack{unusable(in, a, c, parent)}
		}
	}

	if out := giving(in.o, in.by, in.how, in.auth.Policies, in.above, in.outside, c); len(out) > 0 {
		return out
	}

	add := fmt.Sprintf("add an AllowancePolicy that allows %s %s", in.o.groupKind().Kind, c.Pattern())
	if byPipeline(in.o, in.by, in.how, in.above) {
		add = forUpgrade
	}

	near := lackingGroup(in.o, in.auth.Policies, c)
	if reported || len(near) > 0 {
		return near
	}

	none := fmt.Sprintf("no policy about %s allows it", in.o.Parent.GetKind())

	switch some := partial(in.o, in.auth.Policies); {
	case len(some) == 0:
		return []Lack{{What: policy.LackPolicy, Text: none, Fix: add}}
	case len(some) > 1, c.Field == v1alpha1.MutationCreate, c.Field == v1alpha1.MutationDelete: // None is near.
		return []Lack{{Policy: some[0].Name(), What: policy.LackField, Text: none, Fix: add}}
	default:
		return []Lack{{
			Policy: some[0].Name(), What: policy.LackField, Text: fmt.Sprintf(
				"policy %q allows only %s of %s", some[0].Name(), strings.Join(mutations(in.o, some[0]), ", "), in.o.groupKind().Kind),
			Fix: add, Short: fmt.Sprintf("policy %q does not allow it", some[0].Name()),
		}}
	}
}

// partial are the policies about the parent's kind that allow something of the object's kind.
func partial(o objects, policies *policy.Set) []*policy.Policy {
	var out []*policy.Policy

	for _, p := range policies.For(o.Parent.GroupVersionKind().GroupKind()) {
		if givesAllowance(o, p, nil) {
			out = append(out, p)
		}
	}

	return out
}

// giving are the policies about the parent's kind that would give an allowance for a
// change: each of them, as whoever changed the parent was warned of each.
func giving(o objects, by writer, how manner, policies *policy.Set, above *above, outside outside, c change.Change) []Lack {
	var out []Lack

	for _, p := range policies.For(o.Parent.GroupVersionKind().GroupKind()) {
		if !givesAllowance(o, p, &c) {
			continue
		}

		out = append(out, Lack{
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
func byPipeline(o objects, by writer, how manner, above *above) bool {
	return composes(o, how, o.Parent) && by.isCrossplane() && !resource.IsClaim(o.Parent) && len(above.edited) == 0
}

// unusable says why an allowance of the parent that covers the change does not
// serve.
func unusable(in *inputs, a v1alpha1.Allowance, c change.Change, parent string) Lack {
	p := in.auth.Policies.ByName(a.Policy)

	switch {
	case bars(in.o, in.above, in.places, a, c):
		since, _ := heldSince(in.o, in.above, in.places, c)
		if since.Edited && since.Of == "" {
			return perhapsOf(a, parent, ofUpdate)
		}

		if since.Edited {
			return perhapsOf(a, parent, ofEdit)
		}

		return Lack{
			Policy: a.Policy, What: policy.LackEarlier, Text: fmt.Sprintf(
				"pending since %s, before %s of %s allowed it", allowance.DescribeID(since.At), allowance.DescribeID(a.ID), parent),
			Fix: "approve it", Short: "pending since " + allowance.DescribeID(since.At),
		}
	case perhapsEdited(in.o, in.how, in.auth.Policies, in.above, in.places, in.desired, a, c):
		return perhapsOf(a, parent, ofEdit)
	case perhapsRevised(in.o, in.how, in.places, in.desired, a, c):
		return perhapsOf(a, parent, ofUpdate)
	case premature(in.o, a):
		return Lack{Policy: a.Policy, What: policy.LackParent, Text: fmt.Sprintf(
			"%s allows it only while %s's deletion of it is in progress", parent, a.Initiator)}
	case consumed(in.o, in.how, in.above, in.now, a, c):
		return Lack{
			Policy: a.Policy, What: policy.LackConsumed, Text: fmt.Sprintf(
				"the allowance of %s (policy %q, generation %d) is used up", parent, a.Policy, a.Generation) + opensNoGate(in.outside, p, c),
			Short: "its allowance is used up",
		}
	case p == nil:
		return Lack{
			Policy: a.Policy, What: policy.LackPolicy, Text: fmt.Sprintf("policy %q is not in force any more", a.Policy),
			Fix: fmt.Sprintf("apply it again, or change %s again", parent),
		}
	case !stillGives(in.o, p, a, c):
		return Lack{
			Policy: a.Policy, What: policy.LackPolicy, Text: fmt.Sprintf("policy %q no longer allows it", a.Policy),
			Fix: fmt.Sprintf("let the policy allow it, or change %s again", parent),
		}
	default:
		return Lack{Policy: a.Policy, What: policy.LackSubject, Text: fmt.Sprintf("policy %q: ", a.Policy) +
			onlySome(policy.Describe(p.Spec().Subjects, func(s v1alpha1.Subject) bool { return !s.MayInitiate }), in.by.User.Name)}
	}
}

// What a change may follow from, and what to do then.
const (
	ofEdit   = "the edit"
	ofUpdate = "an update of the Composition"
)

// perhapsOf says that a change may follow from something else than what gave an allowance.
func perhapsOf(a v1alpha1.Allowance, parent, what string) Lack {
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
func opensNoGate(outside outside, p *policy.Policy, c change.Change) string {
	if p == nil || !outside.gated || !goesOut(c) || opensGate(p, letsOut) {
		return ""
	}

	return ", but not External Update, which opens its gate"
}

// givesAllowance reports whether a policy gives an allowance for a change of the object;
// for nil, for any.
func givesAllowance(o objects, p *policy.Policy, c *change.Change) bool {
	for _, a := range permissionsOf(o, p) {
		if c == nil || allowance.Covers(a, o.groupKind(), *c) {
			return true
		}
	}

	return false
}

// permissionsOf are what a policy allows of the object's kind.
func permissionsOf(o objects, p *policy.Policy) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	gk := o.groupKind()

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

func mutations(o objects, p *policy.Policy) []string {
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

// onlySome says who may do something that a user may not, both as text.
func onlySome(who, user string) string {
	if who == policy.Nobody {
		return "no one may"
	}

	return fmt.Sprintf("only %s may, not %s", who, user)
}
