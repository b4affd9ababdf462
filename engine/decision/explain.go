// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func inObject(u *unstructured.Unstructured, err error) error {
	return fmt.Errorf("%s %q: %w", u.GetKind(), resource.Name(u), err)
}

func inPolicy(name string, err error) error {
	return fmt.Errorf("policy %q: %w", name, err)
}

// missing says what it would take to allow a change.
func (d *decider) missing(c change.Change) string {
	var parts []string

	if own := d.missingInitiator(c); own != "" {
		parts = append(parts, own)
	}

	switch {
	case d.ParentGone:
		parts = append(parts, "its parent is gone")
	case d.Parent != nil:
		parts = append(parts, d.missingAllowance(c))
	}

	return strings.Join(parts, "; ")
}

// missingInitiator says why no policy about the object's own kind lets the
// user start a chain.
func (d *decider) missingInitiator(c change.Change) string {
	var parts []string

	for _, p := range d.Policies.For(d.groupKind()) {
		subjects := p.Spec().Subjects
		if !p.Names(c) || !policy.HasInitiators(subjects) {
			continue
		}

		var lacks []string
		if !policy.MayInitiate(subjects, d.User) {
			lacks = append(lacks, fmt.Sprintf("user %q may not initiate it (%s may)", d.User.Name, initiators(subjects)))
		}

		if v := d.evaluate(p); !v.Met {
			lacks = append(lacks, v.Missing)
		}

		parts = append(parts, fmt.Sprintf("policy %q: %s", p.Name(), strings.Join(lacks, ", and ")))
	}

	return strings.Join(parts, "; ")
}

func initiators(subjects []v1alpha1.Subject) string {
	return policy.Describe(subjects, func(s v1alpha1.Subject) bool { return s.MayInitiate })
}

// missingAllowance says why the parent allows nothing, and which policy would.
func (d *decider) missingAllowance(c change.Change) string {
	parent := fmt.Sprintf("%s %q", d.Parent.GetKind(), resource.Name(d.Parent))

	for _, a := range d.parentAllowances {
		if !allowance.Covers(a, d.groupKind(), c) {
			continue
		}

		if d.consumed(a) {
			return fmt.Sprintf("the allowance of %s (policy %q, generation %d) is consumed", parent, a.Policy, a.Generation)
		}

		return fmt.Sprintf("%s allows it by policy %q, but user %q may not exercise it (%s may)",
			parent, a.Policy, d.User.Name, d.exercisers(a.Policy))
	}

	if p, fields := d.nearest(c); p != nil {
		return fmt.Sprintf("%s has no allowance for it; policy %q gives one when %s changes %s%s",
			parent, p.Name(), initiatorsOrCause(p), fields, conditions(p))
	}

	return fmt.Sprintf("%s has no allowance for it, and no policy about %s gives one: add an AllowancePolicy that allows %s %s",
		parent, d.Parent.GetKind(), d.groupKind().Kind, c.Field)
}

func (d *decider) exercisers(name string) string {
	p := d.Policies.ByName(name)
	if p == nil {
		return "nobody"
	}

	return policy.Describe(p.Spec().Subjects, func(s v1alpha1.Subject) bool { return !s.MayInitiate })
}

// nearest returns the first policy about the parent's kind that would allow
// the change, and the fields that trigger it.
func (d *decider) nearest(c change.Change) (*policy.Policy, string) {
	gk := d.groupKind()

	for _, p := range d.Policies.For(d.Parent.GroupVersionKind().GroupKind()) {
		for _, perm := range p.Spec().Allow {
			for _, a := range expand(perm, v1alpha1.Allowance{}) {
				if allowance.Covers(a, gk, c) {
					return p, strings.Join(p.Spec().Match.Fields, " or ")
				}
			}
		}
	}

	return nil, ""
}

func initiatorsOrCause(p *policy.Policy) string {
	if policy.HasInitiators(p.Spec().Subjects) {
		return initiators(p.Spec().Subjects)
	}

	return "an allowed change of " + p.Spec().Match.Kind
}

func conditions(p *policy.Policy) string {
	if len(p.Spec().Match.CEL) == 0 {
		return ""
	}

	return fmt.Sprintf(" and %s", strings.Join(p.Spec().Match.CEL, " and "))
}

// warn tells the user what will not follow from their change, or what of it
// was kept back. What follows from a new root needs no allowance.
func (d *decider) warn() {
	if d.root() && d.Operation == OperationCreate {
		return
	}

	object := fmt.Sprintf("%s %q", d.groupKind().Kind, resource.Name(d.subject()))

	for _, f := range d.decision.Findings {
		if f.Verdict != Unallowed {
			continue
		}

		d.decision.Warnings = append(d.decision.Warnings, fmt.Sprintf("%s: %s: %s", object, d.effect(f.Change), f.Missing))
	}
}

// effect says what becomes of an unallowed change.
func (d *decider) effect(c change.Change) string {
	switch {
	case d.decision.Action == v1alpha1.ActionHold && d.Operation == OperationUpdate:
		return Describe(v1alpha1.HeldChange{
			Field: c.Field, From: change.Text(c.From, maxHeldValue), To: change.Text(c.To, maxHeldValue),
		})
	case d.root():
		return fmt.Sprintf("the change of %s is stored, but nothing may follow from it", c.Field)
	default:
		return fmt.Sprintf("nobody asked for the change of %s", c.Field)
	}
}

// Describe says what is held, without why.
func Describe(h v1alpha1.HeldChange) string {
	from, to := h.From, h.To
	if from == "" {
		from = "(unset)"
	}

	if to == "" {
		to = "(unset)"
	}

	return fmt.Sprintf("%s stays %s (asked: %s)", h.Field, from, to)
}

func unallowedMessage(findings []Finding) string {
	var parts []string

	for _, f := range findings {
		if f.Verdict == Unallowed {
			parts = append(parts, fmt.Sprintf("%s: %s", f.Change.Field, f.Missing))
		}
	}

	return "nobody asked for this change: " + strings.Join(parts, "; ")
}

func forgedMessage(keys []string) string {
	return fmt.Sprintf("only Kausality writes the annotation %s: take it out of your manifest and apply again; "+
		"to allow a change, add an AllowancePolicy", strings.Join(keys, ", "))
}
