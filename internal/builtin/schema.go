// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// described is a type that says itself what it is in JSON.
//
// Source: k8s.io/kube-openapi pkg/generators/openapi.go.
type described interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// alternating is one that is of several types in JSON.
type alternating interface{ OpenAPIV3OneOfTypes() []string }

// schemaOf is the schema of a type. One within itself is left open.
func schemaOf(t reflect.Type, within []reflect.Type) spec.Schema {
	if t.Kind() == reflect.Pointer {
		return schemaOf(t.Elem(), within)
	}

	if out, ok := describedSchema(t); ok || slices.Contains(within, t) {
		return out
	}

	within = append(slices.Clone(within), t)

	switch t.Kind() {
	case reflect.String:
		return *spec.StringProperty()
	case reflect.Bool:
		return *spec.BooleanProperty()
	case reflect.Float32, reflect.Float64:
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"number"}}}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return *spec.StringProperty() // Base64.
		}

		items := schemaOf(t.Elem(), within)

		return *spec.ArrayProperty(&items)
	case reflect.Map:
		values := schemaOf(t.Elem(), within)

		return *spec.MapProperty(&values)
	case reflect.Struct:
		out := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: map[string]spec.Schema{}}}
		addFields(out.Properties, t, within)

		return out
	default:
		if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
			return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"integer"}}}
		}

		return spec.Schema{}
	}
}

// describedSchema is that of a type that says itself what it is.
func describedSchema(t reflect.Type) (spec.Schema, bool) {
	value := reflect.New(t).Interface()

	says, ok := value.(described)
	if !ok {
		return spec.Schema{}, false
	}

	out := spec.Schema{SchemaProps: spec.SchemaProps{Format: says.OpenAPISchemaFormat()}}
	if several, ok := value.(alternating); !ok || len(several.OpenAPIV3OneOfTypes()) < 2 {
		out.Type = says.OpenAPISchemaType()
	}

	return out, true
}

// addFields adds the fields that a struct has in JSON.
func addFields(to map[string]spec.Schema, t reflect.Type, within []reflect.Type) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")

		switch {
		case name == "-" || !f.IsExported():
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}

			addFields(to, inner, within)
		case name != "":
			to[name] = schemaOf(f.Type, within)
		}
	}
}
