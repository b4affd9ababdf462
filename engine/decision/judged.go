// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// judged is a request of which every change is judged.
type judged struct {
	// judge of the new object that is left.
	*judge

	// findings on every gated change, sorted by field.
	findings []Finding
	// incomplete are those on changes that are made once more and still lack
	// something: they stay as they are stored.
	incomplete []Finding
	// action on what is unallowed.
	action v1alpha1.ValidationAction
	// back are the changes that are taken back, in order, and held what is recorded
	// of them.
	back []change.Change
	held []v1alpha1.HeldChange
	// next are the places at which changes are held now.
	next allowance.Withheld
}

// allowed reports whether every change is allowed or not governed.
func (g *judged) allowed() bool {
	return !slices.ContainsFunc(g.findings, func(f Finding) bool { return f.Verdict == Unallowed })
}

// initiated reports whether the user makes any change that they may make.
func (g *judged) initiated() bool {
	return slices.ContainsFunc(g.findings, func(f Finding) bool { return f.Rule == RuleInitiate })
}

// takenBack reports whether a change is taken back.
func (g *judged) takenBack(c change.Change) bool {
	_, ok := slices.BinarySearchFunc(g.back, c, change.Compare)

	return ok
}

// actionOnUnallowed is what to do about unallowed changes: the strictest of what
// the Enforcements say that govern the object, and of what is held without one.
func (g *judged) actionOnUnallowed() v1alpha1.ValidationAction {
	switch {
	case g.Action != "":
		return g.Action
	case g.staysInNamespace() || g.staysWithClaim() || g.openForAnother():
		return v1alpha1.ActionDeny
	case deletesForOthers(g.User):
		return ""
	}

	strictest := v1alpha1.ValidationAction("")
	if g.Old != nil && resource.BoundToClaim(g.Old) {
		strictest = v1alpha1.ActionHold
	}

	if g.guarded() { // A gate holds at the door.
		strictest = v1alpha1.ActionHold
	}

	unnamed := g.onlyUnnamed()

	for _, e := range g.governing {
		if unnamed && e.IgnoresUnnamed() {
			continue
		}

		if a := actionOf(e); enforcement.Strictness(a) > enforcement.Strictness(strictest) {
			strictest = a
		}
	}

	return strictest
}

// onlyUnnamed reports whether something is unallowed, and all that is so is of fields
// that no policy names, and that no Enforcement depends on.
func (g *judged) onlyUnnamed() bool {
	return !g.allowed() && !slices.ContainsFunc(g.findings, func(f Finding) bool {
		return f.Verdict == Unallowed && (!g.unnamed(f.Change) || g.frees(f.Change))
	})
}

// predictGeneration is the generation that the API server will give the new
// object: a mutating webhook runs before it is bumped.
func (g *judged) predictGeneration() int64 {
	if g.Old == nil {
		return 1
	}

	generation := resource.Generation(g.Old)

	for _, c := range g.changes {
		if (!c.Metadata() || bumpsGeneration(g.Old)) && !g.takenBack(c) { // Our annotations are changes too.
			return generation + 1
		}
	}

	return max(generation, 1)
}

// request is which request within its generation a change of the object is: 0
// where it makes the generation. A deletion needs no number, for there is one.
func (g *judged) request(generation int64) int64 {
	if g.Operation != OperationUpdate {
		return 0
	}

	if len(g.approvedEdits) > 0 && resource.ObservedGeneration(g.Old) > 0 {
		return 0 // What follows is what the generation asks for, which is there already.
	}

	if was := resource.Generation(g.Old); was > 0 && generation > was {
		return 0
	}

	return allowance.LastRequest(g.Old, generation) + 1
}
