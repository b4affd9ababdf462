// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Outcome is what came of one condition or selector.
type Outcome string

// Outcomes.
const (
	// OutcomeMet is one that holds.
	OutcomeMet Outcome = "Met"
	// OutcomeNotMet is one that does not.
	OutcomeNotMet Outcome = "NotMet"
	// OutcomeFailed is one that could not be evaluated, and counts as not met.
	OutcomeFailed Outcome = "Failed"
	// OutcomeUnknown is one of which it is not known, and that counts as not met: its
	// parameters, or the labels of the namespace, cannot be read.
	OutcomeUnknown Outcome = "Unknown"
)

// Result is what came of one condition or selector of a policy.
type Result struct {
	// Field of the policy or binding that it is in, such as spec.match.cel[0].
	Field string `json:"field"`
	// Name of the condition; empty for one of cel, and for selectors.
	Name string `json:"name,omitempty"`
	// Text of the expression or selector; for parameters, what is asked for.
	Text string `json:"text"`
	// Outcome of it.
	Outcome Outcome `json:"outcome"`
	// Missing says why it is not met, for a person; empty where it is.
	Missing string `json:"missing,omitempty"`
	// Parameter that it was evaluated with, as KIND "NAMESPACE/NAME"; empty without any.
	Parameter string `json:"parameter,omitempty"`
	// Start is true where it decides only where a chain starts, and counts as met below.
	Start bool `json:"start,omitempty"`
	// Shadow is true where it does not decide at all, for it is in Shadow mode.
	Shadow bool `json:"shadow,omitempty"`
}

// Results are what comes of each selector and condition of the policy, where
// [Policy.Evaluate] stops at the first that is not met.
func (p *Policy) Results(in expression.Input) []Result {
	match := field.NewPath("spec", "match")

	out := p.selectorResults(in, match)

	return append(out, p.params.results(p.scope, p.conditions, in, func(i int) string { return p.atCondition(i).String() })...)
}

// selectorResults are those of the policy's selectors that leave anything out.
func (p *Policy) selectorResults(in expression.Input, match *field.Path) []Result {
	var out []Result

	if !p.objects.Empty() {
		r := Result{Field: match.Child("objectSelector").String(), Text: p.objects.String(), Outcome: OutcomeMet}
		if !p.selectsBoth(in) {
			r.Outcome, r.Missing = OutcomeNotMet, "the object does not match it"
		}

		out = append(out, r)
	}

	if !p.namespaces.Empty() {
		r := Result{Field: match.Child("namespaceSelector").String(), Text: p.namespaces.String(), Outcome: OutcomeMet}

		switch {
		case NamespaceUnknown(in, p.namespaces):
			r.Outcome, r.Missing = OutcomeUnknown, "the labels of the namespace are not known"
		case !Selects(in, labels.Everything(), p.namespaces):
			r.Outcome, r.Missing = OutcomeNotMet, "the namespace does not match it"
		}

		out = append(out, r)
	}

	return out
}

// Results are what comes of each condition of the binding, and with parameters of its
// own of those of the policy that it binds.
func (b *Binding) Results(p *Policy, in expression.Input) []Result {
	at := field.NewPath("spec", "matchConditions")

	out := results(b.scope, b.conditions, in, expression.NewBudget(), func(i int) string { return at.Index(i).String() })
	if b.params == nil {
		return out
	}

	kind, ok := p.ParamKind()
	if !ok || !Overridable(&p.spec) {
		return append(out, Result{
			Field: "spec.paramRef", Outcome: OutcomeNotMet, Missing: "the paramRef of the policy is not overridable",
		})
	}

	return append(out, b.params.of(kind).results(p.scope, p.conditions, in, func(int) string { return "spec.paramRef" })...)
}

// results are those of conditions with each parameter that is found, or of the
// parameters themselves where none is.
func (p *parameters) results(s *expression.Scope, conditions []*condition, in expression.Input, at func(int) string) []Result {
	budget := expression.NewBudget()
	if p == nil {
		return results(s, conditions, in, budget, at)
	}

	q := p.query(in.Home)
	list, err := paramsOf(in, q)
	out := Result{Field: "spec.paramRef", Text: q.Within(list).String(), Outcome: OutcomeMet}

	switch {
	case err != nil:
		out.Outcome, out.Missing = OutcomeUnknown, fmt.Sprintf("it cannot be read: %s", err)
	case len(list.Objects) == 0:
		out.Outcome, out.Missing = OutcomeNotMet, "there is none"
	}

	all := []Result{out}

	for _, object := range list.Objects {
		in.Param = object
		name := expression.ParamName(p.kind.Kind, resource.String(object, "metadata", "namespace"), resource.String(object, "metadata", "name"))

		for _, r := range results(s, conditions, in, budget, at) {
			r.Parameter = name
			all = append(all, r)
		}
	}

	return all
}

// results evaluates each of some conditions, within a budget.
func results(s *expression.Scope, conditions []*condition, in expression.Input, budget *expression.Budget, at func(int) string) []Result {
	given := s.Activate(&in, budget)

	out := make([]Result, len(conditions))

	for i, c := range conditions {
		r := Result{
			Field: at(i), Name: c.name, Text: c.expression.String(), Outcome: OutcomeMet, Start: c.expression.Reads().OfStart, Shadow: c.shadow,
		}

		switch ok, err := budget.EvalIn(c.expression, given); {
		case err != nil:
			r.Outcome, r.Missing = OutcomeFailed, reason(err).Error()
		case !ok:
			r.Outcome, r.Missing = OutcomeNotMet, c.said(given, budget)
		}

		out[i] = r
	}

	return out
}
