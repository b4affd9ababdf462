// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Reach says where nobody can make use of a policy: nobody may initiate, and none of the
// permissions that other policies and windows give is about the fields it names.
func Reach(p *v1alpha1.AllowancePolicySpec, given []v1alpha1.Permission) []Finding {
	at := field.NewPath("spec", "subjects").String()

	switch {
	case policy.HasInitiators(p):
		return nil
	case policy.Forbids(p) && len(p.Subjects) == 0:
		return nil
	case policy.Forbids(p):
		return []Finding{found(Unreachable, at, "none of the subjects may initiate, and nothing is allowed: "+
			"nobody may change these fields by this policy; give a subject mayInitiate: true, or leave out all subjects to say so")}
	case reached(p, given):
		return nil
	}

	return []Finding{found(Unreachable, at, fmt.Sprintf(
		"nobody can make use of the policy: no subject has mayInitiate: true, and no other AllowancePolicy or UpgradeAllowance allows %s of a %s",
		strings.Join(p.Match.Fields, " or "), policy.DescribeKinds(&p.Match)))}
}

// reached reports whether any of some permissions is about the fields that a policy names.
func reached(p *v1alpha1.AllowancePolicySpec, given []v1alpha1.Permission) bool {
	return slices.ContainsFunc(given, func(perm v1alpha1.Permission) bool {
		return Child(perm) && Meets(&p.Match, NameOf(perm)) &&
			slices.ContainsFunc(perm.Mutations, func(m string) bool { return Overlap(p.Match.Fields, m) })
	})
}

// A chain of changes starts with a request of somebody, at some time. What is known of
// that request alone decides where the chain starts: further down other users carry it
// on, later, and a change that was allowed is not to stop half-way.

// metBelow warns of a condition that decides only where a chain starts.
const metBelow = "it reads now, the authorizer, or who asks and how: it decides who may initiate a change, " +
	"and counts as met where another policy or a window led to the change"

// checkStart says which conditions of a policy that also serves below a root count as
// met there. Given are the permissions that other policies and windows give; the policy may
// lead to itself.
func checkStart(p *v1alpha1.AllowancePolicySpec, readings []policy.ConditionReading, given []v1alpha1.Permission) []Finding {
	if !reached(p, given) && !reached(p, p.Allow) {
		return nil
	}

	var out []Finding

	for _, c := range readings {
		if c.Reading.OfStart {
			out = append(out, found(MetBelow, c.At.String(), metBelow))
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

// checkComposed says what of a policy about what XRs compose grants nobody in composition
// functions: there all that is known of a chain's start is that Crossplane asks.
func checkComposed(p *v1alpha1.AllowancePolicySpec, readings []policy.ConditionReading) []Finding {
	var out []Finding

	for _, c := range readings {
		if c.Reading.Authorizer && !c.Shadow && policy.HasInitiators(p) {
			out = append(out, found(Unreachable, c.At.String(), composedAsking))
		}
	}

	if p.BindingMode == v1alpha1.BindingModeRequired {
		out = append(out, found(Unreachable, "spec.bindingMode", composedBinding))
	}

	for i, s := range p.Subjects {
		if s.Kind == v1alpha1.SubjectPermission && s.MayInitiate {
			out = append(out, found(Unreachable, field.NewPath("spec", "subjects").Index(i).String(), composedVerb))
		}
	}

	return out
}

// Overlap reports whether there may be a change that one of some patterns and another one
// cover. What is no pattern covers nothing.
func Overlap(patterns []string, other string) bool {
	q, err := change.ParsePattern(other)
	if err != nil {
		return false
	}

	return slices.ContainsFunc(patterns, func(text string) bool {
		p, err := change.ParsePattern(text)

		return err == nil && p.Overlaps(q)
	})
}
