// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Types of JSON, as schemas name them.
const (
	typeString  = "string"
	typeInteger = "integer"
	typeNumber  = "number"
	typeBoolean = "boolean"
	typeArray   = "array"
	typeObject  = "object"
)

// typeOf is the type of a value; empty for null.
func typeOf(v any) string {
	switch v.(type) {
	case string:
		return typeString
	case bool:
		return typeBoolean
	case int64:
		return typeInteger
	case float64:
		return typeNumber
	case []any:
		return typeArray
	case map[string]any:
		return typeObject
	default:
		return ""
	}
}

func isNumber(v any) bool { return typeOf(v) == typeInteger || typeOf(v) == typeNumber }

// takes reports whether a schema that takes some types takes a value.
func takes(types []string, v any) bool {
	t := typeOf(v)

	return slices.Contains(types, t) || t == typeInteger && slices.Contains(types, typeNumber)
}

// typesAt are the types that a schema takes of a field; none where that is not known.
func typesAt(sch *spec.Schema, path fieldpath.Path) []string {
	for _, s := range path {
		if sch = schemaBelow(unwrapped(sch), s); sch == nil {
			return nil
		}
	}

	sch = unwrapped(sch)
	if sch == nil {
		return nil
	}

	if either, _ := sch.Extensions.GetBool("x-kubernetes-int-or-string"); either || sch.Format == "int-or-string" {
		return []string{typeInteger, typeString}
	}

	if len(sch.Type) > 0 {
		return sch.Type
	}

	types := map[string]bool{}

	for _, some := range slices.Concat(sch.OneOf, sch.AnyOf) {
		for _, t := range some.Type {
			types[t] = true
		}
	}

	return slices.Sorted(maps.Keys(types))
}

// unwrapped is the schema that another one stands for: one with a default is wrapped.
func unwrapped(sch *spec.Schema) *spec.Schema {
	for sch != nil && len(sch.AllOf) == 1 && len(sch.Type) == 0 && len(sch.Properties) == 0 {
		sch = &sch.AllOf[0]
	}

	return sch
}

// schemaBelow is the schema of a field or of an element; nil where none is known.
func schemaBelow(sch *spec.Schema, s fieldpath.Segment) *spec.Schema {
	switch {
	case sch == nil:
		return nil
	case s.Type == fieldpath.SegmentIndex && sch.Items != nil:
		return sch.Items.Schema
	case s.Type == fieldpath.SegmentIndex:
		return nil
	}

	if p, ok := sch.Properties[s.Field]; ok {
		return &p
	}

	if sch.AdditionalProperties != nil {
		return sch.AdditionalProperties.Schema
	}

	return nil
}
