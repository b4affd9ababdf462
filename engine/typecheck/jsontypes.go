// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// jsonTypes gives CEL the types that decoded JSON of a schema has, which is
// what expressions see. That is not what Kubernetes' conversion gives, made
// for the rules of CRDs: there fields have escaped names, and strings with a
// format are timestamps and bytes. What a schema leaves open is dynamic.
type jsonTypes struct {
	types.Provider

	// structs are the schemas of objects with known fields, by the name of
	// their type. Those of fields are added as they are read.
	structs map[string]*spec.Schema
	// variables are the types of a policy's variables, by their names.
	variables map[string]*cel.Type
}

// structOpen begins the names of our types, and no other text of an error.
const structOpen = "{"

// structName is the name of the type of the object at a path. It is no
// identifier, so that an expression cannot name it.
func structName(path string) string { return structOpen + path + "}" }

func structType(path string) *cel.Type { return cel.ObjectType(structName(path)) }

// FindStructType returns the type of a name.
func (t *jsonTypes) FindStructType(name string) (*types.Type, bool) {
	if _, ok := t.structs[name]; !ok && name != structName(variables) {
		return t.Provider.FindStructType(name)
	}

	return types.NewTypeTypeWithParam(cel.ObjectType(name)), true
}

// FindStructFieldNames returns the known fields of a type, sorted.
func (t *jsonTypes) FindStructFieldNames(name string) ([]string, bool) {
	if name == structName(variables) {
		return slices.Sorted(maps.Keys(t.variables)), true
	}

	s, ok := t.structs[name]
	if !ok {
		return t.Provider.FindStructFieldNames(name)
	}

	return slices.Sorted(maps.Keys(s.Properties)), true
}

// FindStructFieldType returns the type of a field.
func (t *jsonTypes) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	if of, ok := t.variables[fieldName]; ok && name == structName(variables) {
		return &types.FieldType{Type: of}, true
	}

	s, ok := t.structs[name]
	if !ok {
		return t.Provider.FindStructFieldType(name, fieldName)
	}

	prop, ok := s.Properties[fieldName]
	if !ok {
		return &types.FieldType{Type: cel.DynType}, isOpen(s)
	}

	path := strings.TrimSuffix(strings.TrimPrefix(name, structOpen), "}")

	return &types.FieldType{Type: t.typeOf(path+"."+fieldName, &prop)}, true
}

// typeOf returns the type of the value at a path. A number is dynamic: its
// JSON decodes to an integer or not, as it is written.
func (t *jsonTypes) typeOf(path string, s *spec.Schema) *cel.Type {
	switch {
	case isObject(s):
		return t.objectType(path, s)
	case len(s.Type) != 1 || s.Nullable || s.Format == "int-or-string" || isSet(s, "x-kubernetes-int-or-string"):
		return cel.DynType
	case s.Type.Contains("array"):
		if s.Items == nil || s.Items.Schema == nil {
			return cel.ListType(cel.DynType)
		}

		return cel.ListType(t.typeOf(path+"[*]", s.Items.Schema))
	case s.Type.Contains("string"):
		return cel.StringType
	case s.Type.Contains("integer"):
		return cel.IntType
	case s.Type.Contains("boolean"):
		return cel.BoolType
	default:
		return cel.DynType
	}
}

// objectType returns the type of an object: a struct where fields are known,
// to which CEL lets null be assigned, or a map.
func (t *jsonTypes) objectType(path string, s *spec.Schema) *cel.Type {
	if isSet(s, "x-kubernetes-embedded-resource") {
		s = withObjectMeta(s)
	}

	switch more := s.AdditionalProperties; {
	case len(s.Properties) > 0:
		t.structs[structName(path)] = s

		return structType(path)
	case more == nil || more.Schema == nil || s.Nullable:
		return cel.DynType
	default:
		return cel.MapType(cel.StringType, t.typeOf(path+"[*]", more.Schema))
	}
}
