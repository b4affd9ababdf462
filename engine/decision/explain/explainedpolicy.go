// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/lack"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// ExplainedPolicy is an AllowancePolicy, and what of it holds.
type ExplainedPolicy struct {
	Policy *policy.Policy

	// Shadow is true where it decides nothing, for it is in Shadow mode.
	Shadow bool
	// Fields of it, and those of the changes that each covers.
	Fields []ExplainedField
	// Excluded are fields that it excludes and that a change is about.
	Excluded []string
	// Results of its selectors, parameters and conditions where a chain starts.
	Results []policy.Result
	// Subjects of it that may initiate, then those of bindings, then those that may carry
	// a change on.
	Subjects []ExplainedSubject
	// Bindings of it in the namespace that the object belongs to.
	Bindings []ExplainedBinding
	// Met is true where all of its selectors, parameters and conditions hold.
	Met bool
	// Initiates is true where the user is among those who may initiate by it, and Missing says
	// why not where it lets anybody.
	Initiates bool
	Missing   string
}

// ExplainedField is a path that a policy is about.
type ExplainedField struct {
	// Path as it is written, or create or delete.
	Path string
	// Covers are the fields of the changes below it.
	Covers []string
}

// ExplainedSubject is a subject of a policy or of a binding.
type ExplainedSubject struct {
	Subject v1alpha1.Subject

	// Binding that names it, as NAMESPACE/NAME; empty for the policy's own.
	Binding string
	// User is true where the user who is asked about is it.
	User bool
}

// ExplainedBinding is an AllowanceBinding.
type ExplainedBinding struct {
	Binding *policy.Binding

	// Results of its conditions and parameters.
	Results []policy.Result
	// Met is true where all of them hold.
	Met bool
}

// explainPolicies are those about the object's kind, and those about the parent's that
// give allowances for it. With changes, of the former those that name any.
func explainPolicies(o request.Objects, auth *authority.Authority, findings []finding.Finding) (about, giving []ExplainedPolicy) {
	for _, p := range auth.Policies.For(o.GroupKind()) {
		if concerns(findings, p) {
			about = append(about, explainPolicy(auth, findings, p, false))
		}
	}

	for _, p := range auth.Policies.Shadowed(o.GroupKind()) {
		if concerns(findings, p) {
			about = append(about, explainPolicy(auth, findings, p, true))
		}
	}

	if o.Parent == nil {
		return about, nil
	}

	for _, p := range auth.Policies.For(o.Parent.GroupVersionKind().GroupKind()) {
		gives := lack.GivesAllowance(o, p, nil)
		if len(findings) > 0 {
			gives = slices.ContainsFunc(findings, func(f finding.Finding) bool { return lack.GivesAllowance(o, p, &f.Change) })
		}

		if gives {
			giving = append(giving, ExplainedPolicy{Policy: p, Fields: fieldsOf(p, nil), Subjects: subjectsOf(auth, p, nil)})
		}
	}

	return about, giving
}

// concerns reports whether a policy names a change; without changes any does.
func concerns(findings []finding.Finding, p *policy.Policy) bool {
	return len(findings) == 0 || slices.ContainsFunc(findings, func(f finding.Finding) bool { return p.Names(f.Change) })
}

func explainPolicy(auth *authority.Authority, findings []finding.Finding, p *policy.Policy, shadow bool) ExplainedPolicy {
	out := ExplainedPolicy{
		Policy: p, Shadow: shadow, Fields: fieldsOf(p, findings), Results: agreed(p.Results(auth.Input()), auth.Evaluate(p)),
	}

	for _, f := range findings {
		for _, e := range p.Excluded(f.Change) {
			if p.Names(f.Change) && !slices.Contains(out.Excluded, e) {
				out.Excluded = append(out.Excluded, e)
			}
		}
	}

	bindings := auth.BindingsOf(p)
	for _, b := range bindings {
		v := auth.EvaluateBinding(p, b)
		out.Bindings = append(out.Bindings, ExplainedBinding{Binding: b, Results: agreed(b.Results(p, auth.Input()), v), Met: v.Met})
	}

	out.Subjects = subjectsOf(auth, p, bindings)
	out.Met = auth.Evaluate(p).Met
	out.Initiates = auth.MayInitiate(p)

	if !out.Initiates && (policy.HasInitiators(p.Spec()) || p.Bindable()) {
		out.Missing = lack.LackingSubject(auth, p)
	}

	return out
}

// agreed are results that say why an evaluation is not met, also where that is none of them: a
// limit of all that a request asks and costs is used up.
func agreed(results []policy.Result, v policy.Evaluation) []policy.Result {
	if v.Met || slices.ContainsFunc(results, func(r policy.Result) bool { return r.Outcome != policy.OutcomeMet && !r.Shadow }) {
		return results
	}

	return append(results, policy.Result{Field: "spec", Outcome: policy.OutcomeUnknown, Missing: v.Missing})
}

// fieldsOf are the paths of a policy, and those of the changes that each covers.
func fieldsOf(p *policy.Policy, findings []finding.Finding) []ExplainedField {
	out := make([]ExplainedField, 0, len(p.Spec().Match.Fields))

	for _, path := range p.Spec().Match.Fields {
		f := ExplainedField{Path: path}

		for _, found := range findings {
			if found.Change.CoveredBy(path) {
				f.Covers = append(f.Covers, found.Change.Field)
			}
		}

		out = append(out, f)
	}

	return out
}

// subjectsOf are the subjects of a policy and of its bindings.
func subjectsOf(auth *authority.Authority, p *policy.Policy, bindings []*policy.Binding) []ExplainedSubject {
	var initiate, carry []ExplainedSubject

	for _, s := range p.Spec().Subjects {
		e := ExplainedSubject{Subject: s, User: auth.User.Is(s) || s.Kind == v1alpha1.SubjectPermission && auth.HasPermission(p)}

		if s.MayInitiate {
			initiate = append(initiate, e)
		} else {
			carry = append(carry, e)
		}
	}

	for _, b := range bindings {
		for _, s := range b.Subjects() {
			initiate = append(initiate, ExplainedSubject{
				Subject: s, Binding: b.Name(), User: auth.User.Is(s) && auth.Settings.InitiatesByBinding(auth.User),
			})
		}
	}

	return slices.Concat(initiate, carry)
}

// FieldChange is the change of one field to some other value, of which nothing else is
// known: create and delete are those of the whole object. The error is about a text that
// is no path of a field.
func FieldChange(object map[string]any, text string) (change.Change, error) {
	switch text {
	case v1alpha1.MutationCreate:
		return change.Create(), nil
	case v1alpha1.MutationDelete:
		return change.Delete(), nil
	}

	p, err := change.ParsePattern(text)
	if err != nil {
		return change.Change{}, fmt.Errorf("%q is %w", text, err)
	}

	if p.Wildcard() {
		return change.Change{}, fmt.Errorf("%q stands for several fields: %w", text, errNoField)
	}

	path := p.Segments()
	from, _ := path.In(object)

	return change.Change{Path: path, Field: path.String(), From: from, To: otherValue}, nil
}

// otherValue stands for some value that a field does not have.
const otherValue = "(another value)"

// errNoField is the cause when a text does not name one field.
var errNoField = errors.New("name one field, such as spec.size or spec.rules[0].port")
