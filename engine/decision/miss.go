// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Who has written a policy for a change, and made a mistake in it, is told of that
// policy before any other.

// lackingBroken are the policies that would be about a change if they compiled.
func (d *decider) lackingBroken(c change.Change) []Lack {
	var out []Lack

	for _, b := range d.Policies.Broken() {
		if d.startsHere(b.Spec, c) || d.Parent != nil && is(b.Spec.Match, d.Parent.GroupVersionKind().GroupKind()) && d.allows(b.Spec, c, false) {
			out = append(out, Lack{Policy: b.Name, What: policy.LackPolicy, Text: fmt.Sprintf(
				"policy %q grants nothing, for it does not compile: correct %s", b.Name, cmp.Or(strings.Join(b.Fields, ", "), "it"))})
		}
	}

	return out
}

// startsHere says whether a policy is about who may initiate a change of an object
// of the kind.
func (d *decider) startsHere(spec *v1alpha1.AllowancePolicySpec, c change.Change) bool {
	return d.root() && is(spec.Match, d.groupKind()) && policy.HasInitiators(spec.Subjects) && covers(spec.Match.Fields, c)
}

// lackingGroup are the policies that would allow a change if they, or what they
// allow, were of another API group.
func (d *decider) lackingGroup(c change.Change) []Lack {
	var out []Lack

	for _, p := range d.Policies.All() {
		if text := d.wrongGroup(p.Spec(), c); text != "" {
			out = append(out, Lack{Policy: p.Name(), What: policy.LackPolicy, Text: fmt.Sprintf("policy %q %s", p.Name(), text)})
		}
	}

	return out
}

// wrongGroup says which API group of a policy keeps it from being about a change;
// empty where none does.
func (d *decider) wrongGroup(spec *v1alpha1.AllowancePolicySpec, c change.Change) string {
	own := d.groupKind()

	if d.root() {
		if spec.Match.Kind == own.Kind && !is(spec.Match, own) && policy.HasInitiators(spec.Subjects) && covers(spec.Match.Fields, c) {
			return fmt.Sprintf("is about %s of API group %q, and this one is of %q", own.Kind, spec.Match.APIGroup, own.Group)
		}

		return ""
	}

	if d.Parent == nil || spec.Match.Kind != d.Parent.GetKind() {
		return ""
	}

	parent := d.Parent.GroupVersionKind().GroupKind()

	switch {
	case !is(spec.Match, parent) && d.allows(spec, c, false):
		return fmt.Sprintf("is about %s of API group %q, and %s %q is of %q",
			parent.Kind, spec.Match.APIGroup, parent.Kind, resource.Name(d.Parent), parent.Group)
	case is(spec.Match, parent) && d.allows(spec, c, true):
		return fmt.Sprintf("allows it of a %s of another API group, and this one is of %q", own.Kind, own.Group)
	default:
		return ""
	}
}

// is says whether a policy matches objects of a kind.
func is(m v1alpha1.Match, gk schema.GroupKind) bool {
	return m.Kind == gk.Kind && (m.APIGroup == "" || m.APIGroup == gk.Group)
}

// covers says whether any of some paths, as text, covers a change.
func covers(paths []string, c change.Change) bool { return slices.ContainsFunc(paths, c.CoveredBy) }

// allows says whether a policy allows a change of an object of the kind, or would
// of one of another API group.
func (d *decider) allows(spec *v1alpha1.AllowancePolicySpec, c change.Change, anyGroup bool) bool {
	own := d.groupKind()

	return slices.ContainsFunc(spec.Allow, func(perm v1alpha1.Permission) bool {
		return perm.Relation != v1alpha1.RelationExternal && perm.Kind == own.Kind &&
			(anyGroup || perm.APIGroup == "" || perm.APIGroup == own.Group) && covers(perm.Mutations, c)
	})
}

// lackingWindow are the UpgradeAllowances that would allow a change if they were in
// force for the object.
func (d *decider) lackingWindow(c change.Change) []Lack {
	var out []Lack

	for i := range d.Upgrades {
		u := &d.Upgrades[i]
		if u.Spec.ServiceAccount != d.User.Name || !upgradeCovers(u, d.groupKind().Group, d.groupKind().Kind, c) ||
			!allowance.Selects(u, d.subject(), d.Old) {
			continue
		}

		if why := d.notInForce(u); why != "" {
			out = append(out, Lack{Policy: u.GetName(), What: policy.LackWindow, Text: fmt.Sprintf(
				"UpgradeAllowance %q would allow it, and %s", u.GetName(), why)})
		}
	}

	return out
}

// notInForce says why a window serves the object no more, or not yet; empty where it
// does. One that has ended is told of for a day.
func (d *decider) notInForce(u *v1alpha1.UpgradeAllowance) string {
	const told = 24 * time.Hour

	switch from, until := u.Spec.ValidFrom.Time, u.Spec.ValidUntil.Time; {
	case d.Now.Before(from):
		return "begins at " + from.UTC().Format(time.RFC3339)
	case d.Now.Sub(until) >= told:
		return ""
	case !d.Now.Before(until):
		return "ended at " + until.UTC().Format(time.RFC3339)
	case u.Spec.Suspend:
		return "is suspended (spec.suspend)"
	case !allowance.InForce(u, d.Now):
		return "is not active yet (spec.activateWhen)"
	case u.Spec.OncePerObject && resource.Annotation(d.subject(), v1alpha1.AnnotationLastUpgrade) == u.GetName():
		return "served this object already (spec.oncePerObject)"
	default:
		return ""
	}
}
