// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/explain"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// exercise is what a scenario tries of a policy that is in a file.
type exercise struct {
	place, name string
	spec        *v1alpha1.AllowancePolicySpec
	tried       map[string]tried
}

// tried is what was tried of a part of a policy.
type tried struct{ allowed, refused bool }

func (e *exercise) add(more map[string]tried) {
	for field, t := range more {
		was := e.tried[field]
		e.tried[field] = tried{was.allowed || t.allowed, was.refused || t.refused}
	}
}

func (e *exercise) allow(field string) { e.add(map[string]tried{field: {allowed: true}}) }

func (e *exercise) refuse(field string) { e.add(map[string]tried{field: {refused: true}}) }

// exercises are those of the scenario, which is decided as it wants.
func (s *Scenario) exercises(got Outcome) ([]*exercise, error) {
	var out []*exercise

	for i := range s.Policies {
		p := &s.Policies[i]

		place := s.where[v1alpha1.KindPolicy+"/"+p.GetName()]
		if p.Spec.EnforcementMode != v1alpha1.EnforcementModeShadow && !strings.HasPrefix(place, s.at.Path+":") {
			out = append(out, &exercise{place: place, name: p.GetName(), spec: &p.Spec, tried: map[string]tried{}})
		}
	}

	if s.Request == nil || len(out) == 0 {
		return out, nil
	}

	req, _ := s.Decision()

	x, err := explain.Explain(explain.Inquiry{Request: req})
	if err != nil {
		return nil, fmt.Errorf("cannot explain what is decided: %w", err)
	}

	if len(x.Changes) == 0 { // Then it is about no policy.
		return out, nil
	}

	given := given(s.Old, got.stored)

	for _, e := range out {
		for _, p := range x.Policies {
			if p.Policy.Spec().EnforcementMode != v1alpha1.EnforcementModeShadow && p.Policy.Name() == e.name {
				e.about(p, x.Changes, given)
			}
		}

		for _, p := range x.Giving {
			if p.Policy.Name() == e.name {
				e.giving(p, x.Changes)
			}
		}

		e.lacking(x.Changes)
	}

	return out, nil
}

// given are the allowances that a request gives. What does not parse is not added to.
func given(old, stored *unstructured.Unstructured) []v1alpha1.Allowance {
	if stored == nil {
		return nil
	}

	out, err := allowance.Parse(stored)
	if err != nil || old == nil {
		return out
	}

	was, err := allowance.Parse(old)
	if err != nil {
		return nil
	}

	return slices.DeleteFunc(out, func(a v1alpha1.Allowance) bool {
		return slices.ContainsFunc(was, func(b v1alpha1.Allowance) bool { return reflect.DeepEqual(a, b) })
	})
}

// about is what is tried of a policy about the object.
func (e *exercise) about(p explain.ExplainedPolicy, changes []finding.Finding, given []v1alpha1.Allowance) {
	for i, f := range p.Fields {
		covered := slices.DeleteFunc(slices.Clone(changes), func(c finding.Finding) bool { return !slices.Contains(f.Covers, c.Change.Field) })

		for _, c := range covered {
			field := fmt.Sprintf("spec.match.fields[%d]", i)

			switch {
			case e.initiated(c), slices.ContainsFunc(given, func(a v1alpha1.Allowance) bool { return e.follows(a, c) }):
				e.allow(field)
				e.allow(fieldPolicy)
				e.met(p)
			case c.Verdict == finding.Unallowed:
				e.refuse(field)
			}

			e.starts(p, c)
		}
	}
}

// initiated reports whether a change is allowed because the policy lets the user initiate it, or lacks of
// the policy only the approval of others.
func (e *exercise) initiated(c finding.Finding) bool {
	if e.waits(c) {
		return !slices.ContainsFunc(c.Lacks, func(l finding.Lack) bool { return l.Policy == e.name && l.What != policy.LackApproval })
	}

	return c.Verdict == finding.Allowed && c.Rule == finding.RuleInitiate && c.Policy == e.name
}

// waits reports whether a change lacks the approval of others that the policy asks for.
func (e *exercise) waits(c finding.Finding) bool {
	return slices.ContainsFunc(c.Lacks, func(l finding.Lack) bool { return l.Policy == e.name && l.What == policy.LackApproval })
}

// follows reports whether an allowance is what the policy lets follow from a change.
func (e *exercise) follows(a v1alpha1.Allowance, c finding.Finding) bool {
	return c.Verdict == finding.Allowed && a.Policy == e.name && allowance.Field(a) == c.Change.Field
}

// starts is what is tried of who may initiate a change, and of the conditions where they decide alone.
func (e *exercise) starts(p explain.ExplainedPolicy, c finding.Finding) {
	unallowed := c.Verdict == finding.Unallowed
	carried := c.Verdict == finding.Allowed && (c.Rule == finding.RuleAllowance || c.Rule == finding.RuleUpgrade)

	if !p.Met && (unallowed && p.Initiates || carried) {
		e.unmet(p, carried)
	}

	for i, s := range e.spec.Subjects {
		user := slices.ContainsFunc(p.Subjects, func(x explain.ExplainedSubject) bool { return x.Subject == s && x.Binding == "" && x.User })

		switch {
		case !s.MayInitiate:
		case e.initiated(c) && user:
			e.allow(fieldSubject(i))
		case unallowed && p.Met && !p.Initiates:
			e.refuse(fieldSubject(i))
		}
	}
}

// met are the conditions with which a change is allowed.
func (e *exercise) met(p explain.ExplainedPolicy) {
	for _, c := range conditionsOf(&e.spec.Match) {
		if !slices.ContainsFunc(p.Results, func(r policy.Result) bool { return r.Field == c.field && r.Outcome != policy.OutcomeMet }) {
			e.allow(c.field)
		}
	}
}

// unmet are the conditions for which a change is not allowed, or nothing follows from one that is carried
// on: what decides where a chain starts counts as met there.
func (e *exercise) unmet(p explain.ExplainedPolicy, carried bool) {
	for _, r := range p.Results {
		if r.Outcome != policy.OutcomeMet && (!r.Start || !carried) {
			e.refuse(r.Field)
			e.refuse(fieldPolicy)
		}
	}
}

// giving is what is tried of a policy about the parent, which gives allowances.
func (e *exercise) giving(p explain.ExplainedPolicy, changes []finding.Finding) {
	for _, c := range changes {
		by := c.Verdict == finding.Allowed && c.Rule == finding.RuleAllowance && c.Policy == e.name
		if by {
			e.allow(fieldPolicy)
		}

		lacks := slices.ContainsFunc(c.Lacks, func(l finding.Lack) bool { return l.Policy == e.name && l.What == policy.LackSubject })

		for i, s := range e.spec.Subjects {
			user := slices.ContainsFunc(p.Subjects, func(x explain.ExplainedSubject) bool { return x.Subject == s && x.User })

			switch {
			case s.MayInitiate:
			case by && user:
				e.allow(fieldSubject(i))
			case lacks:
				e.refuse(fieldSubject(i))
			}
		}
	}
}

// lacking is whether a change is not allowed for something of the policy.
func (e *exercise) lacking(changes []finding.Finding) {
	for _, c := range changes {
		if slices.ContainsFunc(c.Lacks, func(l finding.Lack) bool { return l.Policy == e.name && l.What != policy.LackApproval }) {
			e.refuse(fieldPolicy)
		}
	}
}
