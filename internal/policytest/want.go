// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Want is what want.yaml says of a decision.
type Want struct {
	// Allowed says it in short, and is never written by itself: true where every change that a
	// policy is about was asked for, and there is one; false where one was not, whatever is done
	// about it, or where the request is refused.
	Allowed *bool `json:"allowed,omitempty"`
	// Outcome says likewise in one word what comes of it.
	Outcome decision.Outcome `json:"outcome,omitempty"`
	// Action taken on unallowed changes.
	Action v1alpha1.ValidationAction `json:"action,omitempty"`
	// Denied says why the request is refused.
	Denied string `json:"denied,omitempty"`
	// Enforcements that govern the object.
	Enforcements []string `json:"enforcements,omitempty"`
	// Findings on each change.
	Findings []decisionlog.Finding `json:"findings,omitempty"`
	// Forged annotations.
	Forged []string `json:"forged,omitempty"`
	// Held changes.
	Held []v1alpha1.HeldChange `json:"held,omitempty"`
	// Problems with the input.
	Problems []string `json:"problems,omitempty"`
	// Shadow says what would be decided otherwise without Shadow mode.
	Shadow []string `json:"shadow,omitempty"`
	// Shadowed says so in fields, and is written where everything is compared.
	Shadowed []Shadowed `json:"shadowed,omitempty"`
	// Warnings for the user.
	Warnings []string `json:"warnings,omitempty"`
}

// Plan is what want.yaml says of a gate.
type Plan struct {
	// Move to make.
	Move gate.Move `json:"move"`
	// Policies that spec.managementPolicies gets or keeps.
	Policies []string `json:"policies"`
	// Record that is written; none where nothing is.
	Record *v1alpha1.GateRecord `json:"record,omitempty"`
	// Left are the allowances that stay.
	Left []v1alpha1.Allowance `json:"left,omitempty"`
	// Why, for a person.
	Why string `json:"why,omitempty"`
	// Overdue is true where the gate was open for too long.
	Overdue bool `json:"overdue,omitempty"`
	// Ungated is true where the provider supports no gate.
	Ungated bool `json:"ungated,omitempty"`
	// Again is when to check again.
	Again string `json:"again,omitempty"`
	// Broken says why it cannot be known whether the change has landed.
	Broken string `json:"broken,omitempty"`
	// Problem with the annotations.
	Problem string `json:"problem,omitempty"`
}

// outcomes are those that want.yaml may name.
func outcomes() []decision.Outcome {
	return []decision.Outcome{
		decision.OutcomeAllowed, decision.OutcomeAudited, decision.OutcomeDenied, decision.OutcomeHeld,
		decision.OutcomeUnchanged, decision.OutcomeUngoverned, decision.OutcomeWarned,
	}
}

// readWant checks that want.yaml, patched.yaml and texts.yaml can be compared.
func (s *Scenario) readWant() error {
	s.Written = Written{Want: s.text(fileWant), Patched: s.text(filePatched), Texts: s.text(fileTexts)}

	var err error
	if s.stored, err = s.section(filePatched).mapping(); err != nil {
		return err
	}

	if err := s.readTexts(); err != nil || !s.has(fileWant) {
		return err
	}

	want := s.section(fileWant)
	if s.wanted, err = want.mapping(); err != nil {
		return err
	}

	if path, ok := null("", s.wanted); ok {
		return want.wrong(path, "it has no value: say what it is to be, or leave it out")
	}

	raw, err := json.Marshal(s.wanted)
	if err != nil {
		return want.fail(0, err)
	}

	switch {
	case s.Gate != nil:
		return want.fill(raw, "", &Plan{})
	case s.Upkeep != nil:
		return want.fill(raw, "", &map[string]string{})
	}

	w := Want{}
	if err := want.fill(raw, "", &w); err != nil {
		return err
	}

	if w.Outcome != "" && !slices.Contains(outcomes(), w.Outcome) {
		return want.wrong("outcome", fmt.Sprintf("%q is none of %s", w.Outcome, text(outcomes())))
	}

	return nil
}

// readTexts checks that texts.yaml can be compared.
func (s *Scenario) readTexts() error {
	texts := s.section(fileTexts)

	var err error
	if s.said, err = texts.mapping(); err != nil || len(s.said) == 0 {
		return err
	}

	raw, err := json.Marshal(s.said)
	if err != nil {
		return texts.fail(0, err)
	}

	return texts.fill(raw, "", &Texts{})
}

// mapping is what a section says, decoded; an empty one where it says nothing.
func (s section) mapping() (map[string]any, error) {
	out := map[string]any{}
	if len(s.text) == 0 {
		return out, nil
	}

	raw, err := s.json()
	if err != nil || string(raw) == "null" {
		return out, err
	}

	err = s.fill(raw, "", &out)

	return out, err
}

// null is the path of a value that is null.
func null(at string, v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return at, true
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path, ok := null(step(at, key), v[key]); ok {
				return path, true
			}
		}
	case []any:
		for i := range v {
			if path, ok := null(fmt.Sprintf("%s[%d]", at, i), v[i]); ok {
				return path, true
			}
		}
	}

	return "", false
}
