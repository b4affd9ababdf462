// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// None is the annotation value of an object that had allowances and has none
// left.
const None = "[]\n"

// Parse reads kausality.io/allowances. An object without the annotation has
// none. The error names the annotation.
func Parse(u *unstructured.Unstructured) ([]v1alpha1.Allowance, error) {
	list, err := parseList[v1alpha1.Allowance](u, v1alpha1.AnnotationAllowances)
	if err == nil {
		err = check(list, v1alpha1.AnnotationAllowances)
	}

	if err != nil {
		return nil, err
	}

	return list, nil
}

// check refuses allowances that do not say what gave them.
func check(list []v1alpha1.Allowance, key string) error {
	for i, a := range list {
		generation, _, ok := parseID(a.ID)

		switch a.Source.Type {
		case v1alpha1.SourcePolicy, v1alpha1.SourceWindow, v1alpha1.SourceApproval, v1alpha1.SourceDeletion, v1alpha1.SourceCreation:
		default:
			ok = false
		}

		if !ok || generation != a.Generation {
			return fmt.Errorf("cannot parse annotation %q: [%d]: source or id: %w", key, i, errNotUnderstood)
		}
	}

	return nil
}

// ParseTrace reads kausality.io/trace, newest entry first.
func ParseTrace(u *unstructured.Unstructured) ([]v1alpha1.TraceEntry, error) {
	return parseList[v1alpha1.TraceEntry](u, v1alpha1.AnnotationTrace)
}

// ParseApproved reads kausality.io/approved, oldest entry first.
func ParseApproved(u *unstructured.Unstructured) ([]v1alpha1.ApprovedChange, error) {
	return parseList[v1alpha1.ApprovedChange](u, v1alpha1.AnnotationApproved)
}

// ParseGate reads kausality.io/gate; nil without an error means that the gate
// controller has not seen the resource yet.
func ParseGate(u *unstructured.Unstructured) (*v1alpha1.GateRecord, error) {
	text := resource.Annotation(u, v1alpha1.AnnotationGate)
	if text == "" {
		return nil, nil //nolint:nilnil // Absent is no error and no record.
	}

	rec := &v1alpha1.GateRecord{}
	if readPlain(text, rec) {
		return rec, checkGate(rec)
	}

	*rec = v1alpha1.GateRecord{}
	if err := yaml.Unmarshal([]byte(text), rec); err != nil {
		return nil, fmt.Errorf("cannot parse annotation %q: %w", v1alpha1.AnnotationGate, err)
	}

	if err := keepUnknown(text, rec); err != nil {
		return nil, fmt.Errorf("cannot parse annotation %q: %w", v1alpha1.AnnotationGate, err)
	}

	return rec, checkGate(rec)
}

// checkGate refuses a record of another version.
func checkGate(rec *v1alpha1.GateRecord) error {
	if rec.V != v1alpha1.RecordVersion {
		return fmt.Errorf("cannot parse annotation %q: %w", v1alpha1.AnnotationGate, errNotUnderstood)
	}

	return check(rec.Allowances, v1alpha1.AnnotationGate)
}

// FormatGate writes kausality.io/gate.
func FormatGate(rec v1alpha1.GateRecord) (string, error) {
	rec.V = v1alpha1.RecordVersion

	return Format(&rec)
}

func parseList[T any](u *unstructured.Unstructured, key string) ([]T, error) {
	text := resource.Annotation(u, key)
	if text == "" {
		return nil, nil
	}

	var out []T

	switch {
	case text == None || text == "[]":
		return []T{}, nil
	case readPlain(text, &out):
		return out, nil
	}

	out = nil
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("cannot parse annotation %q: %w", key, err)
	}

	if err := keepUnknown(text, out); err != nil {
		return nil, fmt.Errorf("cannot parse annotation %q: %w", key, err)
	}

	return out, nil
}

// keepUnknown reads a text once more, for what the types of v do not know.
func keepUnknown(text string, v any) error {
	var generic any
	if err := yaml.Unmarshal([]byte(text), &generic); err != nil {
		return fmt.Errorf("cannot read it without types: %w", err)
	}

	return readUnknown(v, generic)
}

// Format writes an annotation value: block style, keys in the order of the
// struct's fields. An empty list is [].
func Format[T any](v T) (string, error) {
	node, err := toNode(v)
	if err != nil {
		return "", err
	}

	var buf bytes.Buffer

	enc := goyaml.NewEncoder(&buf)
	enc.SetIndent(indent)
	enc.CompactSeqIndent()

	if err := enc.Encode(node); err != nil {
		return "", fmt.Errorf("cannot write annotation: %w", err)
	}

	return buf.String(), nil
}

// FormatList writes a list that cannot fail to be written: of this package's
// payloads, which hold nothing but strings and numbers. No elements is [].
func FormatList[T any](list []T) string {
	if len(list) == 0 {
		return None
	}

	if s, ok := writePlain(list); ok {
		return s
	}

	s, err := Format(list)
	if err != nil {
		return None
	}

	return s
}

// indent is the indentation of nested maps, in spaces.
const indent = 2
