// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// maxTypeErrors limits the errors that are listed for one expression.
const maxTypeErrors = 5

// Variables of expressions.
const (
	object          = "object"
	requestVar      = "request"
	namespaceObject = "namespaceObject"
	parent          = "parent"
	params          = "params"
	variables       = "variables"
)

// typer checks expressions by the types that schemas give. It is for one goroutine at a time, and
// for expressions that compile without these types.
type typer struct {
	env   *cel.Env
	types *jsonTypes
}

// newTyper makes a typer by the schemas of a kind.
func newTyper(a Against) (*typer, error) {
	known := &jsonTypes{variables: map[string]*cel.Type{}, structs: map[string]*spec.Schema{
		structName(requestVar): requestSchema(), structName(namespaceObject): namespaceSchema(),
	}}

	for name, s := range map[string]*spec.Schema{object: a.Schema, params: a.Params, parent: a.Parent} {
		if s != nil && isObject(s) {
			known.structs[structName(name)] = withObjectMeta(s)
		}
	}

	env, err := expression.TypedEnv(func(name string) *cel.Type {
		if _, ok := known.structs[structName(name)]; !ok && name != variables {
			return cel.DynType
		}

		return structType(name)
	}, func(own types.Provider) types.Provider {
		known.Provider = own

		return known
	})
	if err != nil {
		return nil, fmt.Errorf("cannot check expressions: %w", err)
	}

	return &typer{env: env, types: known}, nil
}

// check says what is wrong with an expression; empty when nothing is. What it gives is the type
// of its variable from then on.
func (t *typer) check(w policy.Written) string {
	tree, wrong := compileErrors(t.env, w.Text)

	of := cel.DynType
	if tree != nil {
		of = tree.OutputType()
	}

	if w.Role == expression.RoleVariable {
		t.types.variables[w.Variable] = of
	}

	if err := w.Role.Check(of); err != nil {
		return fmt.Sprintf("1:1: %s", err)
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
