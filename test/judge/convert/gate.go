// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Former annotations of a managed resource, which are one now.
const (
	formerPolicies = v1alpha1.AnnotationPrefix + "management-policies"
	formerMode     = v1alpha1.AnnotationPrefix + "mode"
)

var errMeaning = errors.New("it does not mean the same")

// Gate converts what an object says of its gate, and who owns that.
func Gate(o map[string]any) error {
	if annotations := resource.Map(o, "metadata", "annotations"); annotations != nil {
		was := gateMeant(annotations)
		convertGate(annotations)

		if is := gateMeans(annotations); was != nil && !reflect.DeepEqual(was, is) {
			return fmt.Errorf("gate of %v: %w: %+v, and %+v", resource.String(o, "metadata", "name"), errMeaning, was, is)
		}
	}

	for _, entry := range resource.List(o, "metadata", "managedFields") {
		fields := resource.Map(map[string]any{"": entry}, "", "fieldsV1", "f:metadata", "f:annotations")

		for _, key := range []string{formerPolicies, formerMode} {
			if v, ok := fields["f:"+key]; ok {
				delete(fields, "f:"+key)
				fields["f:"+v1alpha1.AnnotationDesiredPolicies] = v
			}
		}
	}

	return nil
}

// convertGate converts annotations, of an object or of a patch.
func convertGate(annotations map[string]any) {
	if annotations[v1alpha1.AnnotationDesiredPolicies] != nil {
		return // It has the present form, and a former one beside it is meant to be there.
	}

	policies, known := annotations[formerPolicies]
	mode, _ := annotations[formerMode].(string)

	switch text, ok := policies.(string); {
	case ok:
		annotations[v1alpha1.AnnotationDesiredPolicies] = desiredOf(text, mode)
	case known:
		annotations[v1alpha1.AnnotationDesiredPolicies] = policies
	case mode != "":
		annotations[v1alpha1.AnnotationDesiredPolicies] = gate.FormatDesired(v1alpha1.DesiredPolicies{Mode: v1alpha1.Mode(mode)})
	}

	delete(annotations, formerPolicies)
	delete(annotations, formerMode)

	if text, ok := annotations[v1alpha1.AnnotationGate].(string); ok {
		annotations[v1alpha1.AnnotationGate] = recordOf(text)
	}
}

// desiredOf is the record of a former list, and a former mode. What did not parse does not then.
func desiredOf(text, mode string) string {
	var list []string
	if yaml.Unmarshal([]byte(text), &list) != nil {
		return text
	}

	if list == nil {
		list = []string{}
	}

	return gate.FormatDesired(v1alpha1.DesiredPolicies{Policies: list, Mode: v1alpha1.Mode(mode)})
}

// formerRecord is what a record of a gate said otherwise.
type formerRecord struct {
	V       int                `json:"v"`
	State   v1alpha1.GateState `json:"state"`
	Initial bool               `json:"initial"`
	Audit   bool               `json:"audit"`
}

// first is the state in a record, where it comes first, in flow style or not.
var first = regexp.MustCompile(`^(\{?)(\n?state: *)(\w+)`)

// recordOf converts the record of a gate.
func recordOf(text string) string {
	var was formerRecord
	if yaml.Unmarshal([]byte(text), &was) != nil || was.V != 0 || was.State == "" {
		return text
	}

	if was.State == v1alpha1.GateUngated {
		out, _ := allowance.FormatGate(v1alpha1.GateRecord{State: was.State, Audit: was.Audit}) // It is of texts.

		return out
	}

	initial := "unacknowledged: true"
	if was.State == v1alpha1.GateOpen {
		initial = "creating: true"
	}

	text = strings.ReplaceAll(text, "initial: true", initial)
	if strings.HasPrefix(text, "{") {
		return first.ReplaceAllString(text, "${1}v: 1, ${2}${3}")
	}

	return "v: 1\n" + text
}

// convertRecord converts the record that a move of a gate was to write.
func convertRecord(rec map[string]any) {
	if rec["v"] != nil || rec["state"] == nil {
		return
	}

	rec["v"] = v1alpha1.RecordVersion

	if rec["state"] == string(v1alpha1.GateUngated) {
		delete(rec, "generation")
		delete(rec, "since")
	}

	if rec["initial"] == true {
		rec["creating"] = true
		if rec["state"] == string(v1alpha1.GateClosed) {
			delete(rec, "creating")
			rec["unacknowledged"] = true
		}
	}

	delete(rec, "initial")
}

// gateMeaning is what annotations say of a gate.
type gateMeaning struct {
	policies         []string
	asked, audit     bool
	state            v1alpha1.GateState
	actions          []string
	allowances       int
	first, unproven  bool
	generation, used int64
}

// gateMeant is what they said; nil where they are of the present form, or do not parse.
func gateMeant(annotations map[string]any) *gateMeaning {
	var (
		out  gateMeaning
		was  formerRecord
		rest v1alpha1.GateRecord
	)

	text, asked := annotations[formerPolicies].(string)
	record, _ := annotations[v1alpha1.AnnotationGate].(string)

	for _, into := range []any{&was, &rest} {
		if yaml.Unmarshal([]byte(record), into) != nil {
			return nil
		}
	}

	if was.V != 0 || annotations[v1alpha1.AnnotationDesiredPolicies] != nil || yaml.Unmarshal([]byte(text), &out.policies) != nil {
		return nil
	}

	out.asked, out.audit = asked, annotations[formerMode] == string(v1alpha1.ModeAudit)
	out.state = was.State

	if was.State != v1alpha1.GateUngated {
		out.actions, out.allowances, out.generation, out.used = rest.Actions, len(rest.Allowances), rest.Generation, rest.Consumed
	}

	out.first = was.Initial && was.State == v1alpha1.GateOpen
	out.unproven = was.Initial && was.State == v1alpha1.GateClosed

	slices.Sort(out.policies)

	return &out
}

// gateMeans is what they say now.
func gateMeans(annotations map[string]any) *gateMeaning {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": maps.Clone(annotations)}}}

	desired, err := gate.ParseDesired(u)
	rec, recordErr := gate.ParseRecord(u)

	if err != nil || recordErr != nil {
		return &gateMeaning{state: "not understood"}
	}

	out := &gateMeaning{policies: slices.Clone(desired.Policies), asked: gate.HasDesired(u), audit: desired.Mode == v1alpha1.ModeAudit}
	slices.Sort(out.policies)

	if rec != nil {
		out.state, out.actions, out.allowances = rec.State, rec.Actions, len(rec.Allowances)
		out.first, out.unproven, out.generation, out.used = rec.Creating, rec.Unacknowledged, rec.Generation, rec.Consumed
	}

	return out
}
