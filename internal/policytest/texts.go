// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"fmt"
	"slices"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
)

// Texts is texts.yaml: the messages of a decision or a gate, for people. No program may read them.
type Texts struct {
	// Denied says why the request is refused.
	Denied string `json:"denied,omitempty"`
	// Held are the reasons of held changes, in order, by field.
	Held map[string][]string `json:"held,omitempty"`
	// Lacks are the reasons why changes are not allowed, in order, by field.
	Lacks map[string][]string `json:"lacks,omitempty"`
	// Problems with the input.
	Problems []string `json:"problems,omitempty"`
	// Shadow says what would be decided otherwise without Shadow mode.
	Shadow []string `json:"shadow,omitempty"`
	// Stored are the reasons in the annotation kausality.io/held of the object to be stored, in
	// order, by field.
	Stored map[string][]string `json:"stored,omitempty"`
	// Warnings for the user.
	Warnings []string `json:"warnings,omitempty"`
	// Why a gate is moved or not.
	Why string `json:"why,omitempty"`
	// Broken says why it cannot be known whether the change has landed.
	Broken string `json:"broken,omitempty"`
	// Problem with the annotations of a managed resource.
	Problem string `json:"problem,omitempty"`
}

// Shadowed is a change that would be decided otherwise without Shadow mode.
type Shadowed struct {
	// Field that changes.
	Field string `json:"field"`
	// Verdict, Rule and Policy of the finding that there would be.
	Verdict finding.Verdict `json:"verdict"`
	Rule    finding.Rule    `json:"rule,omitempty"`
	Policy  string          `json:"policy,omitempty"`
	// By is the policy in Shadow mode that makes the difference, and Condition the condition of it.
	By        string `json:"by,omitempty"`
	Condition string `json:"condition,omitempty"`
}

// textFields are the fields of want.yaml that are texts as a whole.
func textFields() []string {
	return []string{"broken", "denied", "problem", "problems", "shadow", "warnings", "why"}
}

// shadowed adds the decisions that would be others without Shadow mode.
func (o *Outcome) shadowed(list []decision.Shadowed) error {
	if len(list) == 0 {
		return nil
	}

	out := make([]Shadowed, len(list))
	for i, s := range list {
		out[i] = Shadowed{
			Field: s.Finding.Change.Field, Verdict: s.Finding.Verdict, Rule: s.Finding.Rule, Policy: s.Finding.Policy,
			By: s.By.Policy, Condition: s.By.Condition,
		}
	}

	var said []any
	if err := again(out, &said); err != nil {
		return err
	}

	o.said[keyShadowed] = said

	return nil
}

const keyShadowed = "shadowed"

// Decisions is the outcome without texts, as want.yaml of an exact scenario says it.
func (o *Outcome) Decisions() (map[string]any, error) {
	var out map[string]any
	if err := again(o.said, &out); err != nil {
		return nil, err
	}

	delete(out, "allowed") // The outcome says it.

	for _, key := range textFields() {
		delete(out, key)
	}

	for _, f := range mappings(out["findings"]) {
		for _, l := range mappings(f["lacks"]) {
			delete(l, "text")
		}
	}

	for _, h := range mappings(out["held"]) {
		delete(h, "missing")
	}

	return out, nil
}

// Texts is what the outcome says to people, as texts.yaml says it.
func (o *Outcome) Texts() (map[string]any, error) {
	said := map[string]any{}

	for _, key := range textFields() {
		if v, ok := o.said[key]; ok {
			said[key] = v
		}
	}

	var out Texts
	if err := again(said, &out); err != nil {
		return nil, err
	}

	var lacks []map[string]any

	for _, f := range mappings(o.said["findings"]) {
		for _, l := range mappings(f["lacks"]) {
			lacks = append(lacks, map[string]any{"field": f["field"], "text": l["text"]})
		}
	}

	stored, err := o.storedReasons()
	if err != nil {
		return nil, err
	}

	out.Lacks, out.Held, out.Stored = byField(lacks, "text"), byField(mappings(o.said["held"]), "missing"), byField(stored, "missing")

	texts := map[string]any{}
	err = again(out, &texts)

	return texts, err
}

// storedReasons is the annotation kausality.io/held of the object to be stored, where it is not as
// it was asked for.
func (o *Outcome) storedReasons() ([]map[string]any, error) {
	if o.stored == nil {
		return nil, nil
	}

	text := o.stored.GetAnnotations()[v1alpha1.AnnotationHeld]
	if text == o.asked.GetAnnotations()[v1alpha1.AnnotationHeld] {
		return nil, nil
	}

	list, err := heldIn(text)

	return slices.DeleteFunc(list, func(h map[string]any) bool { return h["stored"] != nil }), err
}

// heldIn reads the annotation kausality.io/held.
func heldIn(text string) ([]map[string]any, error) {
	var list []any
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("cannot read annotation %s: %w", v1alpha1.AnnotationHeld, err)
	}

	return mappings(list), nil
}

// PatchedDecisions is patched.yaml without the reasons in kausality.io/held.
func (o *Outcome) PatchedDecisions() (string, error) {
	text, err := o.Patched()
	if err != nil || text == "" {
		return text, err
	}

	patch, err := section{text: []byte(text)}.mapping()
	if err != nil {
		return "", err
	}

	meta, _ := patch["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)

	held, ok := annotations[v1alpha1.AnnotationHeld].(string)
	if !ok {
		return text, nil
	}

	list, err := heldIn(held)
	if err != nil {
		return "", err
	}

	for _, h := range list {
		delete(h, "missing")
	}

	raw, err := yaml.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("cannot write annotation %s: %w", v1alpha1.AnnotationHeld, err)
	}

	annotations[v1alpha1.AnnotationHeld] = string(raw)

	return document(patch)
}

// document is a mapping as YAML; empty where it says nothing.
func document(of map[string]any) (string, error) {
	if len(of) == 0 {
		return "", nil
	}

	raw, err := yaml.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("cannot write YAML: %w", err)
	}

	return string(raw), nil
}

// byField are the texts under a key of some mappings, by what they have under field; nil for none.
func byField(list []map[string]any, key string) map[string][]string {
	var out map[string][]string

	for _, m := range list {
		if out == nil {
			out = map[string][]string{}
		}

		field, _ := m["field"].(string)
		text, _ := m[key].(string)
		out[field] = append(out[field], text)
	}

	return out
}

// mappings are the elements of a list that are mappings.
func mappings(list any) []map[string]any {
	all, _ := list.([]any)
	out := make([]map[string]any, 0, len(all))

	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}

	return out
}

// again encodes a value as JSON and decodes it into another; whole numbers stay whole.
func again(from, into any) error {
	raw, err := json.Marshal(from)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
	}

	if err != nil {
		return fmt.Errorf("cannot convert outcome: %w", err)
	}

	return nil
}
