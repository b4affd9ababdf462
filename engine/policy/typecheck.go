// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// maxTypeErrors limits the errors that are listed for one expression.
const maxTypeErrors = 5

// TypeCheck checks the policy's expressions, its variables among them, against the schema of a kind, whose
// references are resolved. What it finds is for a person to read and makes
// no difference to how the policy is evaluated. Without a schema, or with one
// that says nothing about the fields of an object, it finds nothing. Params is the
// schema of the policy's paramKind; nil for none.
func (p *Policy) TypeCheck(schema, params *spec.Schema) []v1alpha1.TypeCheckingWarning {
	return p.typeCheck(schema, params, nil)
}

// typeCheck is the same with the schema of the parents; nil where it is not known.
func (p *Policy) typeCheck(schema, params, parent *spec.Schema) []v1alpha1.TypeCheckingWarning {
	match := &p.spec.Match
	if schema == nil || !isObject(schema) || len(p.conditions)+len(match.Variables) == 0 {
		return nil
	}

	env, err := p.schemaEnv(schema, params, parent)
	if err != nil {
		return nil
	}

	s, err := newScope(env, match.Variables)
	if err != nil {
		return nil
	}

	out := s.checkVariables(match.Variables)

	check := func(text string, wrong func(*cel.Env, string) string, at *field.Path) {
		if warning := wrong(s.env, text); warning != "" {
			out = append(out, v1alpha1.TypeCheckingWarning{Field: at.String(), Warning: warning})
		}
	}

	at := field.NewPath("spec", "match")

	for i, text := range match.CEL {
		check(text, typeErrors, at.Child("cel").Index(i))
	}

	for i, c := range match.MatchConditions {
		at := at.Child("matchConditions").Index(i)
		check(c.Expression, typeErrors, at.Child("expression"))

		if c.MessageExpression != "" {
			check(c.MessageExpression, textErrors, at.Child("messageExpression"))
		}
	}

	return out
}

// checkVariables checks variables, each with the types of those before it.
func (s *scope) checkVariables(list []v1alpha1.Variable) []v1alpha1.TypeCheckingWarning {
	var out []v1alpha1.TypeCheckingWarning

	for i, v := range list {
		tree, text := compileErrors(s.env, v.Expression)
		if text != "" {
			at := field.NewPath("spec", "match", "variables").Index(i).Child("expression")
			out = append(out, v1alpha1.TypeCheckingWarning{Field: at.String(), Warning: text})
		}

		s.types.fields[v.Name] = cel.DynType
		if tree != nil {
			s.types.fields[v.Name] = tree.OutputType()
		}
	}

	return out
}

// CheckExpressions checks expressions about changes of objects against the schema
// of a kind, as [Policy.TypeCheck] does; each is at a path.
func CheckExpressions(schema *spec.Schema, expressions []*Expression, at func(int) *field.Path) []v1alpha1.TypeCheckingWarning {
	return checkIn(typedEnv, schema, expressions, at)
}

// CheckCloseWhen checks the condition on which gates close that the policy's
// allowances open against the schema of a kind of managed resources.
func (p *Policy) CheckCloseWhen(schema *spec.Schema) []v1alpha1.TypeCheckingWarning {
	if p.gate == nil || p.gate.CloseWhen == nil {
		return nil
	}

	at := field.NewPath("spec", "gate", "closeWhen")

	return checkIn(typedManagedEnv, schema, []*Expression{p.gate.CloseWhen}, func(int) *field.Path { return at })
}

// checkIn checks expressions in an environment whose types a schema has.
func checkIn(
	in func() (*cel.Env, error), schema *spec.Schema, expressions []*Expression, at func(int) *field.Path,
) []v1alpha1.TypeCheckingWarning {
	if schema == nil || !isObject(schema) || len(expressions) == 0 {
		return nil
	}

	env, err := schemaEnv(in, schema)
	if err != nil {
		return nil
	}

	var out []v1alpha1.TypeCheckingWarning

	for i, e := range expressions {
		if text := typeErrors(env, e.text); text != "" {
			out = append(out, v1alpha1.TypeCheckingWarning{Field: at(i).String(), Warning: text})
		}
	}

	return out
}

// typedEnv returns the environment of type checks about changes, which lacks but
// what the types of its variables hold.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var typedEnv = sync.OnceValues(func() (*cel.Env, error) {
	return newEnv(variables(structType(varObject), structType(varRequest), structType(varNamespaceObject), cel.DynType)...)
})

// typedPolicyEnv is that of policies.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var typedPolicyEnv = sync.OnceValues(func() (*cel.Env, error) {
	of := variables(structType(varObject), structType(varRequest), structType(varNamespaceObject), cel.DynType)

	return newEnv(append(of, asking()...)...)
})

// typedBelowEnv is that of policies where the kind of the parent is known.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var typedBelowEnv = sync.OnceValues(func() (*cel.Env, error) {
	of := variables(structType(varObject), structType(varRequest), structType(varNamespaceObject), structType(varParent))

	return newEnv(append(of, asking()...)...)
})

// typedManagedEnv is that about a managed resource alone.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var typedManagedEnv = sync.OnceValues(func() (*cel.Env, error) {
	return newEnv(cel.Variable(varObject, structType(varObject)))
})

// schemaEnv returns an environment to check expressions in about objects of a
// schema. It is for one goroutine at a time.
func schemaEnv(in func() (*cel.Env, error), schema *spec.Schema) (*cel.Env, error) {
	env, err := in()
	if err != nil {
		return nil, err
	}

	return withSchemas(env, map[string]*spec.Schema{varObject: withObjectMeta(schema)})
}

// schemaEnv is that of a policy's expressions, with parameters and parents of other schemas;
// nil where these are not known.
func (p *Policy) schemaEnv(schema, params, parent *spec.Schema) (*cel.Env, error) {
	schemas, in := map[string]*spec.Schema{varObject: withObjectMeta(schema)}, typedPolicyEnv
	if parent != nil && isObject(parent) {
		schemas[varParent], in = withObjectMeta(parent), typedBelowEnv
	}

	env, err := in()
	if err != nil {
		return nil, err
	}

	if p.spec.ParamKind == nil {
		return withSchemas(env, schemas)
	}

	of := cel.DynType

	if params != nil && isObject(params) {
		schemas[varParams], of = withObjectMeta(params), structType(varParams)
	}

	if env, err = env.Extend(cel.Variable(varParams, of)); err != nil {
		return nil, fmt.Errorf("cannot make the CEL environment of parameters: %w", err)
	}

	return withSchemas(env, schemas)
}

// withSchemas gives variables of an environment the types of schemas, and the request and
// the namespace theirs.
func withSchemas(env *cel.Env, schemas map[string]*spec.Schema) (*cel.Env, error) {
	structs := map[string]*spec.Schema{structName(varRequest): requestSchema(), structName(varNamespaceObject): namespaceSchema()}
	for name, s := range schemas {
		structs[structName(name)] = s
	}

	env, err := env.Extend(cel.CustomTypeProvider(&jsonTypes{Provider: env.CELTypeProvider(), structs: structs}))
	if err != nil {
		return nil, fmt.Errorf("cannot make the CEL environment of a schema: %w", err)
	}

	return env, nil
}

// typeErrors says what is wrong with an expression that is true or false; empty
// when nothing is.
func typeErrors(env *cel.Env, text string) string {
	tree, wrong := compileErrors(env, text)
	if tree != nil {
		return resultError(tree.OutputType(), cel.BoolType, errNotBool)
	}

	return wrong
}

// textErrors says what is wrong with an expression that gives text.
func textErrors(env *cel.Env, text string) string {
	tree, wrong := compileErrors(env, text)
	if tree != nil {
		return resultError(tree.OutputType(), cel.StringType, errNotText)
	}

	return wrong
}

// compileErrors says what is wrong with an expression of any type, each error
// with its line and column; the tree is nil when it does not compile.
func compileErrors(env *cel.Env, text string) (*cel.Ast, string) {
	tree, iss := env.Compile(text)
	if iss.Err() == nil {
		return tree, ""
	}

	errs := slices.Clone(iss.Errors())
	slices.SortStableFunc(errs, func(a, b *cel.Error) int {
		return cmp.Or(cmp.Compare(a.Location.Line(), b.Location.Line()), cmp.Compare(a.Location.Column(), b.Location.Column()))
	})

	var out []string

	// The same is said once: a macro may have multiplied what it is given.
	said := map[string]bool{}

	for _, e := range errs {
		if mistaken(e.Message) || said[e.Message] {
			continue
		}

		said[e.Message] = true
		out = append(out, fmt.Sprintf("%d:%d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
	}

	if more := len(out) - maxTypeErrors; more > 0 {
		out = append(out[:maxTypeErrors], fmt.Sprintf("and %d more", more))
	}

	return nil, strings.Join(out, "; ")
}

// mistaken reports whether an error is none when the expression is evaluated: an
// object is a map then, and object.spec['x'], 'x' in object.spec, size() and
// exists() are right. A field of a list of objects is wrong even then.
func mistaken(message string) bool {
	return strings.Contains(message, structOpen) && !strings.HasSuffix(message, "does not support field selection")
}

// resultError says what is wrong with the type of an expression's result;
// empty when nothing is.
func resultError(t, want *cel.Type, not error) string {
	if t.IsExactType(want) || t.IsExactType(cel.DynType) {
		return ""
	}

	return fmt.Sprintf("1:1: %s but %s", not, t)
}

// jsonTypes gives CEL the types that decoded JSON of a schema has, which is
// what expressions see. That is not what Kubernetes' conversion gives, made
// for the rules of CRDs: there fields have escaped names, and strings with a
// format are timestamps and bytes. What a schema leaves open is dynamic.
type jsonTypes struct {
	types.Provider

	// structs are the schemas of objects with known fields, by the name of
	// their type. Those of fields are added as they are read.
	structs map[string]*spec.Schema
}

// structOpen begins the names of our types, and no other text of an error.
const structOpen = "{"

// structName is the name of the type of the object at a path. It is no
// identifier, so that an expression cannot name it.
func structName(path string) string { return structOpen + path + "}" }

func structType(path string) *cel.Type { return cel.ObjectType(structName(path)) }

// FindStructType returns the type of a name.
func (t *jsonTypes) FindStructType(name string) (*types.Type, bool) {
	if _, ok := t.structs[name]; !ok {
		return t.Provider.FindStructType(name)
	}

	return types.NewTypeTypeWithParam(cel.ObjectType(name)), true
}

// FindStructFieldNames returns the known fields of a type, sorted.
func (t *jsonTypes) FindStructFieldNames(name string) ([]string, bool) {
	s, ok := t.structs[name]
	if !ok {
		return t.Provider.FindStructFieldNames(name)
	}

	return slices.Sorted(maps.Keys(s.Properties)), true
}

// FindStructFieldType returns the type of a field.
func (t *jsonTypes) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
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

func isObject(s *spec.Schema) bool { return len(s.Type) == 1 && s.Type.Contains("object") }

// isOpen reports whether an object may have fields its schema does not name.
func isOpen(s *spec.Schema) bool {
	more := s.AdditionalProperties

	return isSet(s, "x-kubernetes-preserve-unknown-fields") || more != nil && (more.Allows || more.Schema != nil)
}

func isSet(s *spec.Schema, extension string) bool {
	on, _ := s.Extensions.GetBool(extension)

	return on
}

// Properties that several schemas have.
const (
	propertyKind = "kind"
	propertyName = "name"
)

// withObjectMeta returns a schema with the fields that every resource has,
// whatever its schema says of them.
func withObjectMeta(s *spec.Schema) *spec.Schema {
	out := *s
	out.Properties = map[string]spec.Schema{}
	maps.Copy(out.Properties, s.Properties)
	maps.Copy(out.Properties, map[string]spec.Schema{
		"apiVersion": *spec.StringProperty(),
		propertyKind: *spec.StringProperty(),
		"metadata":   objectMetaSchema(),
	})

	if len(s.Properties) == 0 {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true}
	}

	return &out
}

func objectMetaSchema() spec.Schema {
	text, number, flag := *spec.StringProperty(), *spec.Int64Property(), *spec.BooleanProperty()
	texts := *spec.MapProperty(&text)
	owner := objectSchema(map[string]spec.Schema{
		"apiVersion": text, propertyKind: text, propertyName: text, "uid": text, "controller": flag, "blockOwnerDeletion": flag,
	})

	return objectSchema(map[string]spec.Schema{
		propertyName: text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text, "selfLink": text,
		"generation": number, "deletionGracePeriodSeconds": number,
		"creationTimestamp": text, "deletionTimestamp": text,
		"labels": texts, "annotations": texts,
		"finalizers": *spec.ArrayProperty(&text), "ownerReferences": *spec.ArrayProperty(&owner),
		"managedFields": *spec.ArrayProperty(&spec.Schema{}),
	})
}

// requestSchema is that of a request, as decisions give it to expressions.
func requestSchema() *spec.Schema {
	text := *spec.StringProperty()
	texts := *spec.ArrayProperty(&text)
	user := objectSchema(map[string]spec.Schema{"username": text, "uid": text, "groups": texts, "extra": *spec.MapProperty(&texts)})
	out := objectSchema(map[string]spec.Schema{
		"operation": text, propertyName: text, "namespace": text, "userInfo": user, "subResource": text,
		propertyKind: objectSchema(map[string]spec.Schema{"group": text, "version": text, propertyKind: text}),
		"resource":   objectSchema(map[string]spec.Schema{"group": text, "version": text, "resource": text}),
		"dryRun":     *spec.BooleanProperty(), "options": {},
	})

	return &out
}

func namespaceSchema() *spec.Schema {
	out := objectSchema(map[string]spec.Schema{"spec": {}, "status": {}})

	return withObjectMeta(&out)
}

func objectSchema(properties map[string]spec.Schema) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
}
