// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package lack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// A policy that was written for a change, but with a mistake in it, is reported
// before any other.

// lackingBroken are the policies that would be about a change if they compiled.
func lackingBroken(o request.Objects, policies *policy.Set, c change.Change) []finding.Lack {
	var out []finding.Lack

	for _, b := range policies.Broken() {
		below := o.Parent != nil && policy.IsAbout(&b.Spec.Match, o.Parent.GroupVersionKind().GroupKind())
		if startsHere(o, b.Spec, c) || below && wouldAllow(o, b.Spec, c, false) {
			out = append(out, finding.Lack{
				Policy: b.Name, What: policy.LackPolicy, Text: fmt.Sprintf("policy %q does not compile", b.Name),
				Fix: "correct " + cmp.Or(strings.Join(b.Fields, ", "), "it"),
			})
		}
	}

	return out
}

// startsHere reports whether a policy is about who may initiate a change of an object
// of the kind.
func startsHere(o request.Objects, spec *v1alpha1.AllowancePolicySpec, c change.Change) bool {
	return o.Root && policy.IsAbout(&spec.Match, o.GroupKind()) && policy.HasInitiators(spec) && covers(spec.Match.Fields, c)
}

// lackingGroup are the policies that would allow a change if they, or what they
// allow, were of another API group.
func lackingGroup(o request.Objects, policies *policy.Set, c change.Change) []finding.Lack {
	var out []finding.Lack

	kind := o.GroupKind().Kind
	if !o.Root && o.Parent != nil {
		kind = o.Parent.GetKind()
	}

	for _, p := range policies.Named(kind) {
		if text := wrongGroup(o, p.Spec(), c); text != "" {
			out = append(out, finding.Lack{
				Policy: p.Name(), What: policy.LackPolicy, Text: fmt.Sprintf("policy %q %s", p.Name(), text),
				Short: fmt.Sprintf("policy %q is about another API group", p.Name()),
			})
		}
	}

	return out
}

// wrongGroup says which API group of a policy prevents it from being about a change;
// empty where none does.
func wrongGroup(o request.Objects, spec *v1alpha1.AllowancePolicySpec, c change.Change) string {
	gk := o.GroupKind()

	if o.Root {
		otherGroup := policy.NamesKind(&spec.Match, gk.Kind) && !policy.IsAbout(&spec.Match, gk)
		if otherGroup && policy.HasInitiators(spec) && covers(spec.Match.Fields, c) {
			return fmt.Sprintf("is about %s of API group %q, not %q", gk.Kind, spec.Match.APIGroup, gk.Group)
		}

		return ""
	}

	if o.Parent == nil || !policy.NamesKind(&spec.Match, o.Parent.GetKind()) {
		return ""
	}

	parent := o.Parent.GroupVersionKind().GroupKind()

	switch {
	case !policy.IsAbout(&spec.Match, parent) && wouldAllow(o, spec, c, false):
		return fmt.Sprintf("is about %s of API group %q, not %q",
			parent.Kind, spec.Match.APIGroup, parent.Group)
	case policy.IsAbout(&spec.Match, parent) && wouldAllow(o, spec, c, true):
		return fmt.Sprintf("allows it for %s of another API group, not %q", gk.Kind, gk.Group)
	default:
		return ""
	}
}

// covers reports whether any of some paths, as text, covers a change.
func covers(paths []string, c change.Change) bool { return slices.ContainsFunc(paths, c.CoveredBy) }

// wouldAllow reports whether a policy allows a change of an object of the kind, or would
// of one of another API group.
func wouldAllow(o request.Objects, spec *v1alpha1.AllowancePolicySpec, c change.Change, anyGroup bool) bool {
	gk := o.GroupKind()

	return slices.ContainsFunc(spec.Allow, func(perm v1alpha1.Permission) bool {
		return perm.Relation != v1alpha1.RelationExternal && perm.Kind == gk.Kind &&
			(anyGroup || perm.APIGroup == "" || perm.APIGroup == gk.Group) && covers(perm.Mutations, c)
	})
}

// lackingWindow are the UpgradeAllowances that would allow a change if they were in
// force for the object.
func lackingWindow(o request.Objects, by request.Writer, windows input.Windows, now time.Time, c change.Change) []finding.Lack {
	var out []finding.Lack

	for _, u := range windows.All {
		if u.Object.Spec.ServiceAccount != by.User.Name || !u.Covers(o.GroupKind(), c) ||
			!u.Selects(o.Target(), o.Old) {
			continue
		}

		if why := NotInForce(o, now, u); why != "" {
			out = append(out, finding.Lack{Policy: u.Object.GetName(), What: policy.LackWindow, Text: fmt.Sprintf(
				"UpgradeAllowance %q %s", u.Object.GetName(), why)})
		}
	}

	return out
}

// NotInForce says why a window serves the object no more, or not yet; empty where it
// does. One that has ended is reported for a day.
func NotInForce(o request.Objects, now time.Time, u *allowance.Window) string {
	const reported = 24 * time.Hour

	switch from, until := u.Object.Spec.ValidFrom.Time, u.Object.Spec.ValidUntil.Time; {
	case now.Before(from):
		return "begins at " + from.UTC().Format(time.RFC3339)
	case now.Sub(until) >= reported:
		return ""
	case !now.Before(until):
		return "ended at " + until.UTC().Format(time.RFC3339)
	case u.Object.Spec.Suspend:
		return "is suspended (spec.suspend)"
	case !u.InForce(now):
		return "is not active yet (spec.activateWhen)"
	case u.Object.Spec.OncePerObject && input.ChangedUnder(o.Target(), u):
		return "has served this object (spec.oncePerObject)"
	default:
		return ""
	}
}
