// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// A policy that was written for a change, but with a mistake in it, is reported
// before any other.

// lackingBroken are the policies that would be about a change if they compiled.
func (x explainer) lackingBroken(c change.Change) []Lack {
	var out []Lack

	for _, b := range x.Policies.Broken() {
		below := x.Parent != nil && policy.IsAbout(&b.Spec.Match, x.Parent.GroupVersionKind().GroupKind())
		if x.startsHere(b.Spec, c) || below && x.allows(b.Spec, c, false) {
			out = append(out, Lack{
				Policy: b.Name, What: policy.LackPolicy, Text: fmt.Sprintf("policy %q does not compile", b.Name),
				Fix: "correct " + cmp.Or(strings.Join(b.Fields, ", "), "it"),
			})
		}
	}

	return out
}

// startsHere reports whether a policy is about who may initiate a change of an object
// of the kind.
func (x explainer) startsHere(spec *v1alpha1.AllowancePolicySpec, c change.Change) bool {
	return x.root() && policy.IsAbout(&spec.Match, x.groupKind()) && policy.HasInitiators(spec) && covers(spec.Match.Fields, c)
}

// lackingGroup are the policies that would allow a change if they, or what they
// allow, were of another API group.
func (x explainer) lackingGroup(c change.Change) []Lack {
	var out []Lack

	kind := x.groupKind().Kind
	if !x.root() && x.Parent != nil {
		kind = x.Parent.GetKind()
	}

	for _, p := range x.Policies.Named(kind) {
		if text := x.wrongGroup(p.Spec(), c); text != "" {
			out = append(out, Lack{
				Policy: p.Name(), What: policy.LackPolicy, Text: fmt.Sprintf("policy %q %s", p.Name(), text),
				Short: fmt.Sprintf("policy %q is about another API group", p.Name()),
			})
		}
	}

	return out
}

// wrongGroup says which API group of a policy prevents it from being about a change;
// empty where none does.
func (x explainer) wrongGroup(spec *v1alpha1.AllowancePolicySpec, c change.Change) string {
	gk := x.groupKind()

	if x.root() {
		otherGroup := policy.NamesKind(&spec.Match, gk.Kind) && !policy.IsAbout(&spec.Match, gk)
		if otherGroup && policy.HasInitiators(spec) && covers(spec.Match.Fields, c) {
			return fmt.Sprintf("is about %s of API group %q, not %q", gk.Kind, spec.Match.APIGroup, gk.Group)
		}

		return ""
	}

	if x.Parent == nil || !policy.NamesKind(&spec.Match, x.Parent.GetKind()) {
		return ""
	}

	parent := x.Parent.GroupVersionKind().GroupKind()

	switch {
	case !policy.IsAbout(&spec.Match, parent) && x.allows(spec, c, false):
		return fmt.Sprintf("is about %s of API group %q, not %q",
			parent.Kind, spec.Match.APIGroup, parent.Group)
	case policy.IsAbout(&spec.Match, parent) && x.allows(spec, c, true):
		return fmt.Sprintf("allows it for %s of another API group, not %q", gk.Kind, gk.Group)
	default:
		return ""
	}
}

// covers reports whether any of some paths, as text, covers a change.
func covers(paths []string, c change.Change) bool { return slices.ContainsFunc(paths, c.CoveredBy) }

// allows reports whether a policy allows a change of an object of the kind, or would
// of one of another API group.
func (x explainer) allows(spec *v1alpha1.AllowancePolicySpec, c change.Change, anyGroup bool) bool {
	gk := x.groupKind()

	return slices.ContainsFunc(spec.Allow, func(perm v1alpha1.Permission) bool {
		return perm.Relation != v1alpha1.RelationExternal && perm.Kind == gk.Kind &&
			(anyGroup || perm.APIGroup == "" || perm.APIGroup == gk.Group) && covers(perm.Mutations, c)
	})
}

// lackingWindow are the UpgradeAllowances that would allow a change if they were in
// force for the object.
func (x explainer) lackingWindow(c change.Change) []Lack {
	var out []Lack

	for _, u := range x.Upgrades {
		if u.Spec.ServiceAccount != x.User.Name || !u.Covers(x.groupKind(), c) ||
			!u.Selects(x.target(), x.Old) {
			continue
		}

		if why := x.notInForce(u); why != "" {
			out = append(out, Lack{Policy: u.GetName(), What: policy.LackWindow, Text: fmt.Sprintf(
				"UpgradeAllowance %q %s", u.GetName(), why)})
		}
	}

	return out
}

// notInForce says why a window serves the object no more, or not yet; empty where it
// does. One that has ended is reported for a day.
func (x explainer) notInForce(u *allowance.Window) string {
	const reported = 24 * time.Hour

	switch from, until := u.Spec.ValidFrom.Time, u.Spec.ValidUntil.Time; {
	case x.Now.Before(from):
		return "begins at " + from.UTC().Format(time.RFC3339)
	case x.Now.Sub(until) >= reported:
		return ""
	case !x.Now.Before(until):
		return "ended at " + until.UTC().Format(time.RFC3339)
	case u.Spec.Suspend:
		return "is suspended (spec.suspend)"
	case !u.InForce(x.Now):
		return "is not active yet (spec.activateWhen)"
	case u.Spec.OncePerObject && changedUnder(x.target(), u):
		return "has served this object (spec.oncePerObject)"
	default:
		return ""
	}
}
