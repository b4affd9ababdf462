// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/lazy"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// varVariables holds the variables of a policy.
const varVariables = "variables"

// typeOfVariables is the type of all variables of a policy. Its name is no identifier, so that an
// expression cannot name it.
//
//nolint:gochecknoglobals // A constant that Go has no way to write.
var typeOfVariables = cel.ObjectType("{variables}")

// errVariableName is the cause when expressions cannot name a variable.
var errVariableName = errors.New("a name is a letter or _, then letters, digits and _, is no word of CEL's own, and has no two _ in a row")

// variable is a compiled [v1alpha1.Variable].
type variable struct {
	name    string
	program cel.Program
}

// eval evaluates the variable for one who uses it. What it costs the budget bears.
func (v *variable) eval(a *Activation, b *Budget) ref.Val {
	if b.used {
		return types.NewErr("variables.%s: %s", v.name, b.over)
	}

	val, details, err := v.program.Eval(a)
	if over := b.Spend(CostOf(details)); err == nil {
		err = over
	}

	if err != nil {
		return types.NewErr("variables.%s: %s", v.name, err)
	}

	return val
}

// Scope is what the expressions of one policy are compiled in.
type Scope struct {
	Env *cel.Env
	// variables and their types, in their order.
	variables []*variable
	types     *variableTypes
	// reads is what each variable reads.
	Reads map[string]Reading
}

// newScope makes a scope without variables yet on an environment.
func newScope(env *cel.Env, variables []v1alpha1.Variable) (*Scope, error) {
	if len(variables) == 0 {
		return &Scope{Env: env}, nil
	}

	known := &variableTypes{Provider: env.CELTypeProvider(), fields: map[string]*cel.Type{}}

	env, err := env.Extend(cel.Variable(varVariables, typeOfVariables), cel.CustomTypeProvider(known))
	if err != nil {
		return nil, fmt.Errorf("cannot make the CEL environment of variables: %w", err)
	}

	return &Scope{Env: env, types: known, Reads: map[string]Reading{}}, nil
}

// CompileScope compiles variables in an environment, each of which sees those before it.
func CompileScope(in func() (*cel.Env, error), list []v1alpha1.Variable, at *field.Path, errs *field.ErrorList) *Scope {
	env, err := in()
	if err != nil {
		*errs = append(*errs, field.InternalError(at, err))

		return &Scope{}
	}

	s, err := newScope(env, list)
	if err != nil {
		*errs = append(*errs, field.InternalError(at, err))

		return &Scope{Env: env}
	}

	for i, v := range list {
		at := at.Index(i)

		if !s.canName(v.Name) {
			*errs = append(*errs, field.Invalid(at.Child("name"), v.Name, errVariableName.Error()))

			continue
		}

		if _, ok := s.types.fields[v.Name]; ok {
			*errs = append(*errs, field.Duplicate(at.Child("name"), v.Name))

			continue
		}

		tree, program, err := CompileTree(s.Env, v.Expression)
		if err != nil {
			*errs = append(*errs, field.Invalid(at.Child("expression"), v.Expression, err.Error()))
			s.types.fields[v.Name] = cel.DynType // What uses it is not wrong, too.

			continue
		}

		s.types.fields[v.Name], s.Reads[v.Name] = tree.OutputType(), ReadingOf(tree, s.Reads)
		s.variables = append(s.variables, &variable{name: v.Name, program: program})
	}

	return s
}

// canName reports whether expressions can select a variable of a name.
func (s *Scope) canName(name string) bool {
	// Kubernetes' lazy map takes names for escaped ones.
	if plain, ok := apiservercel.Unescape(name); !ok || plain != name {
		return false
	}

	_, iss := s.Env.Parse(varVariables + "." + name)

	return iss.Err() == nil && identifier(name)
}

// identifier reports whether a text is one of CEL.
func identifier(text string) bool {
	for i, r := range text {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}

	return text != ""
}

// Activate resolves the names that expressions use for one input, with variables
// that are evaluated when they are first used.
func (s *Scope) Activate(in *Input, b *Budget) *Activation {
	a := &Activation{Input: in}
	if len(s.variables) == 0 {
		return a
	}

	a.anew = func(in *Input) *Activation { return s.Activate(in, b) }

	values := lazy.NewMapValue(typeOfVariables)
	for _, v := range s.variables {
		values.Append(v.name, func(*lazy.MapValue) ref.Val { return v.eval(a, b) })
	}

	a.variables = values

	return a
}

// variableTypes are the types of variables, beside those of a provider.
type variableTypes struct {
	types.Provider

	fields map[string]*cel.Type
}

// FindStructType returns the type of a name.
func (t *variableTypes) FindStructType(name string) (*types.Type, bool) {
	if name != typeOfVariables.TypeName() {
		return t.Provider.FindStructType(name)
	}

	return types.NewTypeTypeWithParam(typeOfVariables), true
}

// FindStructFieldNames returns the fields of a type, sorted.
func (t *variableTypes) FindStructFieldNames(name string) ([]string, bool) {
	if name != typeOfVariables.TypeName() {
		return t.Provider.FindStructFieldNames(name)
	}

	return slices.Sorted(maps.Keys(t.fields)), true
}

// FindStructFieldType returns the type of a field.
func (t *variableTypes) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	if name != typeOfVariables.TypeName() {
		return t.Provider.FindStructFieldType(name, fieldName)
	}

	typ, ok := t.fields[fieldName]
	if !ok {
		return nil, false
	}

	return &types.FieldType{Type: typ}, true
}
