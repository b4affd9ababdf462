// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Coverage is what of the AllowancePolicies in files tests have tried. Of those in the scenarios
// themselves, and those in Shadow mode, nothing is said.
type Coverage struct {
	// Items are how many there are, Covered how many of them are covered, and Percent is that, rounded
	// down; 0 where there is none.
	Items   int `json:"items"`
	Covered int `json:"covered"`
	Percent int `json:"percent"`
	// Policies that tests name, by place.
	Policies []CoveredPolicy `json:"policies"`
}

// CoveredPolicy is what of a policy tests have tried.
type CoveredPolicy struct {
	Name string `json:"name"`
	// Place is its file and the line there, as FILE:LINE.
	Place string `json:"place"`
	// Items are the policy itself, its fields, selectors and conditions, and its subjects, in this order.
	Items []CoveredItem `json:"items"`
}

// CoveredItem is a part of a policy.
type CoveredItem struct {
	// Field that it is, such as spec.match.fields[0]; spec for the policy itself.
	Field string `json:"field"`
	// Text of it, for a person.
	Text string `json:"text"`
	// Allowed is true where a test passes in which a change was allowed by it, or lacked only the approvals that
	// the policy asks for, and Refused where one does in
	// which one was refused, held or warned about for it, or in which nothing followed for it.
	Allowed bool `json:"allowed"`
	Refused bool `json:"refused"`
	// Covered is true where both are, or where the other cannot be.
	Covered bool `json:"covered"`
}

// Lacks says what no test has tried, for a person; empty where it is covered.
func (i CoveredItem) Lacks() string {
	switch {
	case i.Covered:
		return ""
	case i.Allowed:
		return "never refused"
	case i.Refused:
		return "never allowed"
	default:
		return "neither allowed nor refused"
	}
}

// CoverageOf sums up what tests have tried that ran with [Options.Coverage].
func CoverageOf(results []Result) Coverage {
	out := Coverage{Policies: []CoveredPolicy{}}
	all := map[string]*exercise{}

	for _, r := range results {
		for _, e := range r.exercised {
			if first, ok := all[e.place]; ok {
				first.add(e.tried)
			} else {
				all[e.place] = &exercise{place: e.place, name: e.name, spec: e.spec, tried: maps.Clone(e.tried)}
			}
		}
	}

	for _, place := range slices.SortedFunc(maps.Keys(all), comparePlaces) {
		p := all[place].covered()
		out.Policies = append(out.Policies, p)

		for _, i := range p.Items {
			out.Items++

			if i.Covered {
				out.Covered++
			}
		}
	}

	if out.Items > 0 {
		out.Percent = out.Covered * 100 / out.Items
	}

	return out
}

// comparePlaces orders by file, and there by line.
func comparePlaces(a, b string) int {
	i, j := strings.LastIndex(a, ":"), strings.LastIndex(b, ":")
	if a[:i] != b[:j] {
		return strings.Compare(a[:i], b[:j])
	}

	if len(a) != len(b) { // Of numbers the longer one is greater.
		return len(a) - len(b)
	}

	return strings.Compare(a, b)
}

// covered are the items of a policy.
func (e *exercise) covered() CoveredPolicy {
	out := CoveredPolicy{Name: e.name, Place: e.place}

	allows := len(e.spec.Allow) > 0 || policy.HasInitiators(e.spec) ||
		e.spec.BindingMode != "" && e.spec.BindingMode != v1alpha1.BindingModeNone

	add := func(field, text string, mayAllow, mayRefuse bool) {
		t := e.tried[field]
		out.Items = append(out.Items, CoveredItem{
			Field: field, Text: text, Allowed: t.allowed, Refused: t.refused, Covered: (t.allowed || !mayAllow) && (t.refused || !mayRefuse),
		})
	}

	add(fieldPolicy, e.name, allows, true)

	for i, path := range e.spec.Match.Fields {
		add(fmt.Sprintf("spec.match.fields[%d]", i), path, allows, true)
	}

	for _, c := range conditionsOf(&e.spec.Match) {
		add(c.field, c.text, allows, true)
	}

	for i, s := range e.spec.Subjects {
		everybody := s.Kind == v1alpha1.SubjectGroup && s.Name == "system:authenticated"
		add(fieldSubject(i), subjectText(s), true, !everybody)
	}

	return out
}

// condition is a selector or an expression of a policy.
type condition struct{ field, text string }

// conditionsOf are those that decide.
func conditionsOf(m *v1alpha1.Match) []condition {
	var out []condition

	if selects(m.ObjectSelector) {
		out = append(out, condition{"spec.match.objectSelector", text(m.ObjectSelector)})
	}

	if selects(m.NamespaceSelector) {
		out = append(out, condition{"spec.match.namespaceSelector", text(m.NamespaceSelector)})
	}

	for i, cel := range m.CEL {
		out = append(out, condition{fmt.Sprintf("spec.match.cel[%d]", i), cel})
	}

	for i, c := range m.MatchConditions {
		if c.EnforcementMode != v1alpha1.EnforcementModeShadow {
			out = append(out, condition{fmt.Sprintf("spec.match.matchConditions[%d]", i), c.Name + ": " + c.Expression})
		}
	}

	return out
}

// selects reports whether a selector leaves anything out.
func selects(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

// fieldPolicy stands for the whole policy.
const fieldPolicy = "spec"

func fieldSubject(i int) string { return fmt.Sprintf("spec.subjects[%d]", i) }

func subjectText(s v1alpha1.Subject) string {
	if s.Namespace != "" {
		return fmt.Sprintf("%s %s/%s", s.Kind, s.Namespace, s.Name)
	}

	return fmt.Sprintf("%s %s", s.Kind, s.Name)
}
