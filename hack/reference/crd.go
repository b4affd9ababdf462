// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// writeCRDs writes all fields of our kinds, and of the function's input. crd-ref-docs
// reads the Go types instead: a table for each type without the paths of its fields
// and the messages of CEL rules, of annotations' types and lists as well.
func writeCRDs(out *bytes.Buffer) error {
	fmt.Fprint(out, "\n# Kinds\n\nCustom resources of Kausality, and the input of its composition function.\n")

	for _, pattern := range []string{"package/crds/*.yaml", "package/input/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("cannot list %q: %w", pattern, err)
		}

		for _, file := range files {
			raw, err := os.ReadFile(file) //nolint:gosec // Ours.
			if err != nil {
				return fmt.Errorf("cannot read CRD: %w", err)
			}

			crd := &extv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(raw, crd); err != nil {
				return fmt.Errorf("cannot read CRD %q: %w", file, err)
			}

			writeCRD(out, crd)
		}
	}

	return nil
}

func writeCRD(out *bytes.Buffer, crd *extv1.CustomResourceDefinition) {
	names, scope := crd.Spec.Names, "namespaced"
	if crd.Spec.Scope == extv1.ClusterScoped {
		scope = "cluster-scoped"
	}

	for _, v := range crd.Spec.Versions {
		fmt.Fprintf(out, "\n## %s\n\n%s\n\n", names.Kind, paragraph(v.Schema.OpenAPIV3Schema.Description))
		fmt.Fprintf(out, "`apiVersion: %s/%s`, %s", crd.Spec.Group, v.Name, scope)

		if len(names.ShortNames) > 0 {
			fmt.Fprintf(out, ", short name `%s`", strings.Join(names.ShortNames, "`, `"))
		}

		fmt.Fprint(out, ".\n\n| Field | Type | Meaning |\n| --- | --- | --- |\n")

		writeFields(out, "", v.Schema.OpenAPIV3Schema)
	}
}

// writeFields writes a row for each field, depth first.
func writeFields(out *bytes.Buffer, path string, s *extv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if at == "apiVersion" || at == "kind" || at == "metadata" {
			continue
		}

		f := s.Properties[name]
		text := f.Description

		if slices.Contains(s.Required, name) {
			text += " Required."
		}

		text += limits(&f)

		fmt.Fprintf(out, "| `%s` | %s | %s |\n", at, typeOf(&f), cell(text))

		switch {
		case f.Items != nil && f.Items.Schema != nil:
			writeFields(out, at+"[]", f.Items.Schema)
		case f.AdditionalProperties != nil && f.AdditionalProperties.Schema != nil:
			writeFields(out, at+"{}", f.AdditionalProperties.Schema)
		default:
			writeFields(out, at, &f)
		}
	}
}

func typeOf(s *extv1.JSONSchemaProps) string {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return "[]" + typeOf(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(s.AdditionalProperties.Schema)
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	default:
		return s.Type
	}
}

// limits says what values a field takes.
func limits(s *extv1.JSONSchemaProps) string {
	var out strings.Builder

	enum := s.Enum
	if s.Items != nil && s.Items.Schema != nil {
		enum = append(enum, s.Items.Schema.Enum...)
	}

	if len(enum) > 0 {
		values := make([]string, len(enum))
		for i, v := range enum {
			values[i] = strings.Trim(string(v.Raw), `"`)
		}

		fmt.Fprintf(&out, " One of: %s.", strings.Join(values, ", "))
	}

	if s.Default != nil {
		var v any

		_ = json.Unmarshal(s.Default.Raw, &v)

		fmt.Fprintf(&out, " Default: %v.", v)
	}

	for _, limit := range []struct {
		name  string
		value *int64
	}{{"items", s.MaxItems}, {"characters", s.MaxLength}} {
		if limit.value != nil {
			fmt.Fprintf(&out, " At most %d %s.", *limit.value, limit.name)
		}
	}

	if s.Pattern != "" {
		fmt.Fprintf(&out, " Pattern: `%s`.", s.Pattern)
	}

	for _, rule := range s.XValidations {
		fmt.Fprintf(&out, " Rule: %s.", rule.Message)
	}

	return out.String()
}

func paragraph(text string) string { return strings.Join(strings.Fields(text), " ") }
