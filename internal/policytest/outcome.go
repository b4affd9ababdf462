// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
)

// Outcome is what the engine makes of a scenario.
type Outcome struct {
	// Want is all of it, as want.yaml says it.
	Want string
	// Patched is the merge patch from the new object to the one to be stored; empty for none.
	Patched string
	// Missing says what it would take to allow each change that is not allowed.
	Missing []string

	// said is Want, decoded, and what it can be said by in short.
	said map[string]any
}

// Run is what the engine makes of the scenario: want.yaml and patched.yaml.
func (s *Scenario) Run() (want, patched string, err error) {
	out, err := s.Outcome()

	return out.Want, out.Patched, err
}

// Outcome is what the engine makes of the scenario.
func (s *Scenario) Outcome() (Outcome, error) {
	if s.Request != nil {
		return s.outcomeOf(s.Request)
	}

	var (
		out  Outcome
		said any
		err  error
	)

	if s.Gate != nil {
		said, err = s.plan()
	} else {
		said = s.keep()
	}

	if err == nil {
		err = out.say(said)
	}

	return out, err
}

func (s *Scenario) outcomeOf(_ *Request) (Outcome, error) {
	req, bad := s.Decision()
	d := decision.Decide(req)

	w := Describe(d)
	for _, err := range bad {
		w.Problems = append(w.Problems, err.Error())
	}

	from := s.New
	if from == nil {
		from = s.Old
	}

	var out Outcome
	if err := out.say(w); err != nil {
		return out, err
	}

	var err error
	if out.Patched, err = difference(from, d.Object); err != nil {
		return out, err
	}

	for _, f := range d.Findings {
		if text := f.Missing(); text != "" {
			out.Missing = append(out.Missing, f.Change.Field+": "+text)
		}
	}

	out.abridge(d.Outcome())

	return out, nil
}

// abridge adds what says it in short.
func (o *Outcome) abridge(outcome decision.Outcome) {
	o.said["outcome"] = string(outcome)

	switch outcome {
	case decision.OutcomeUnchanged, decision.OutcomeUngoverned:
		o.said["allowed"] = "neither, for the outcome is " + string(outcome)
	default:
		o.said["allowed"] = outcome == decision.OutcomeAllowed
	}
}

// say takes what there is to say.
func (o *Outcome) say(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode what is decided: %w", err)
	}

	text, err := yaml.JSONToYAML(raw)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", fileWant, err)
	}

	o.Want, o.said = string(text), map[string]any{}

	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &o.said); err != nil {
		return fmt.Errorf("cannot decode what is decided: %w", err)
	}

	return nil
}

func write(v any) (string, error) {
	var out Outcome

	err := out.say(v)

	return out.Want, err
}
