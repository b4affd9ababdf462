// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// A chain of changes starts with a request of somebody, at some time. What is known of
// that request alone decides where the chain starts: further down other users carry it
// on, later, and a change that was allowed is not to stop half-way.

// metBelow warns of a condition that decides only where a chain starts.
const metBelow = "it reads now, the authorizer, or who asks and how: it decides who may initiate a change, " +
	"and counts as met where another policy or a window led to the change"

// CheckStart says which conditions of a policy that also serves below a root count as
// met there. Given are the permissions that other policies and windows give; the policy may
// lead to itself.
func (p *Policy) CheckStart(given []v1alpha1.Permission) []v1alpha1.TypeCheckingWarning {
	if !slices.ContainsFunc(given, p.reachedBy) && !slices.ContainsFunc(p.spec.Allow, p.reachedBy) {
		return nil
	}

	var out []v1alpha1.TypeCheckingWarning

	for i, c := range p.conditions {
		if c.expression.reads.OfStart {
			out = append(out, v1alpha1.TypeCheckingWarning{Field: p.atCondition(i).String(), Warning: metBelow})
		}
	}

	return out
}

// Where composition functions decide, nobody answers for the cluster's authorizer, and nobody
// reads bindings.
const (
	composedAsking  = "composition functions ask no authorizer: of what an XR composes nobody initiates a change there by this policy"
	composedBinding = "composition functions read no AllowanceBindings: of what an XR composes nobody initiates a change there by this policy"
	composedVerb    = "composition functions ask no authorizer: of what an XR composes nobody initiates a change there by this Permission"
)

// CheckComposed says what of a policy about what XRs compose grants nobody in composition
// functions: there all that is known of a chain's start is that Crossplane asks.
func (p *Policy) CheckComposed() []v1alpha1.TypeCheckingWarning {
	var out []v1alpha1.TypeCheckingWarning

	say := func(at *field.Path, text string) {
		out = append(out, v1alpha1.TypeCheckingWarning{Field: at.String(), Warning: text})
	}

	for i, c := range p.conditions {
		if c.expression.reads.Authorizer && !c.shadow && HasInitiators(&p.spec) {
			say(p.atCondition(i), composedAsking)
		}
	}

	if p.RequiresBinding() {
		say(field.NewPath("spec", "bindingMode"), composedBinding)
	}

	for i, s := range p.spec.Subjects {
		if s.Kind == v1alpha1.SubjectPermission && s.MayInitiate {
			say(field.NewPath("spec", "subjects").Index(i), composedVerb)
		}
	}

	return out
}

// atCondition is where a condition is written, by its index among all of them.
func (p *Policy) atCondition(i int) *field.Path {
	match := field.NewPath("spec", "match")

	if n := len(p.spec.Match.CEL); i >= n {
		return match.Child("matchConditions").Index(i - n)
	}

	return match.Child("cel").Index(i)
}
