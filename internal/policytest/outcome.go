// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// Outcome is what the engine makes of a scenario.
type Outcome struct {
	// Missing says what it would take to allow each change that is not allowed.
	Missing []string

	// raw is all of it, as want.yaml says it, in JSON; said is that, decoded, and what it can be said by
	// in short.
	raw  []byte
	said map[string]any
	// asked is the new object, or the old one on delete, and stored the one to be stored.
	asked, stored *unstructured.Unstructured
}

// Want is all of it, as want.yaml says it.
func (o *Outcome) Want() (string, error) {
	text, err := yaml.JSONToYAML(o.raw)
	if err != nil {
		return "", fmt.Errorf("cannot write %s: %w", fileWant, err)
	}

	return string(text), nil
}

// Patched is the merge patch from the new object to the one to be stored; empty for none.
func (o *Outcome) Patched() (string, error) { return difference(o.asked, o.stored) }

// Outcome is what the engine makes of the scenario.
func (s *Scenario) Outcome() (Outcome, error) {
	if s.Request != nil {
		return s.outcome()
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

// outcome is that of a request.
func (s *Scenario) outcome() (Outcome, error) {
	req, bad := s.Decision()
	d := decision.Decide(req)
	d.Problems = slices.Concat(d.Problems, bad)

	return OutcomeOf(&req, &d)
}

// OutcomeOf is what the engine makes of a request. Neither is modified.
func OutcomeOf(req *request.Request, d *decision.Decision) (Outcome, error) {
	out := Outcome{asked: req.New, stored: d.Object}
	if out.asked == nil {
		out.asked = req.Old
	}

	if err := out.say(Describe(*d)); err != nil {
		return out, err
	}

	for _, f := range d.Findings {
		if text := f.Missing(); text != "" {
			out.Missing = append(out.Missing, f.Change.Field+": "+text)
		}
	}

	out.abridge(d.Outcome())

	err := out.shadowed(d.Shadow)

	return out, err
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

	o.raw, o.said = raw, map[string]any{}

	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &o.said); err != nil {
		return fmt.Errorf("cannot decode what is decided: %w", err)
	}

	return nil
}
