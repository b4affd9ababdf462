// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Reading is what an expression reads, or may read, of what not every decision has.
type Reading struct {
	// Anything is true of any variable; without one the expression gives the same always.
	Anything bool
	// OfStart is true of what is known only where a chain starts.
	OfStart bool
	// Parent is true of the parent of the object.
	Parent bool
	// Authorizer is true of the cluster's authorizer.
	Authorizer bool
}

// or is what either reads.
func (r Reading) or(o Reading) Reading {
	return Reading{
		Anything: r.Anything || o.Anything, OfStart: r.OfStart || o.OfStart,
		Parent: r.Parent || o.Parent, Authorizer: r.Authorizer || o.Authorizer,
	}
}

// ReadingOf finds what an expression reads, with what variables read by their names.
func ReadingOf(tree *cel.Ast, variables map[string]Reading) Reading {
	var out Reading

	for _, e := range ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), isName) {
		out.Anything = true

		switch nameOf(e) {
		case VarNow:
			out.OfStart = true
		case varAuthorizer, varOwnCheck:
			out = out.or(Reading{OfStart: true, Authorizer: true})
		case varParent:
			out.Parent = true
		case varRequest:
			out.OfStart = out.OfStart || fieldsOf(e).any(atStart)
		case varVariables:
			used := fieldsOf(e)
			for name, r := range variables {
				if used.any(func(field string) bool { return field == name }) {
					out = out.or(r)
				}
			}
		}
	}

	return out
}

// atStart reports whether a field of request is known only where a chain starts. The
// others mean the same all along it.
func atStart(name string) bool { return name == "userInfo" || name == "options" || name == "dryRun" }

// isName reports whether a node is the name of a variable that is given, and none that a macro
// makes, as x is in all(x, x > 0).
func isName(e ast.NavigableExpr) bool {
	if e.Kind() != ast.IdentKind {
		return false
	}

	_, bound := binder(e)

	return !bound
}

// nameOf is the name of a variable. A dot before it has CEL look past those of macros.
func nameOf(e ast.NavigableExpr) string { return strings.TrimPrefix(e.AsIdent(), ".") }

// binder is the macro that makes the variable of a name.
func binder(e ast.NavigableExpr) (ast.NavigableExpr, bool) {
	name := e.AsIdent()

	for at := e; ; {
		parent, ok := at.Parent()
		if !ok {
			return nil, false
		}

		if parent.Kind() == ast.ComprehensionKind {
			c := parent.AsComprehension()
			outside := at.ID() == c.IterRange().ID() || at.ID() == c.AccuInit().ID()

			if !outside && (name == c.IterVar() || name == c.IterVar2() || name == c.AccuVar()) {
				return parent, true
			}
		}

		at = parent
	}
}

// accessed are the fields that an expression reads of a value, as far as it says which.
type accessed struct {
	names []string
	// all is true where it may read any.
	all bool
}

// any reports whether a field for which something is true may be among them.
func (f accessed) any(is func(string) bool) bool { return f.all || slices.ContainsFunc(f.names, is) }

// Functions of CEL that hand a value on, or say that there is one.
const (
	callDyn        = "dyn"
	callOptionalOf = "optional.of"
	callValue      = "value"
	callHasValue   = "hasValue"
)

// binary is how many arguments an operator has that looks something up.
const binary = 2

// fieldsOf are the fields that are read of the value of an expression.
func fieldsOf(e ast.NavigableExpr) accessed {
	parent, ok := e.Parent()
	if !ok {
		return accessed{all: true}
	}

	switch parent.Kind() {
	case ast.SelectKind:
		return accessed{names: []string{parent.AsSelect().FieldName()}}
	case ast.CallKind:
		return fieldsOfCall(e, parent)
	case ast.ComprehensionKind:
		return fieldsOfMacro(e, parent)
	default:
		return accessed{all: true}
	}
}

// fieldsOfCall are those that are read where a value is what a function is called with.
func fieldsOfCall(e, parent ast.NavigableExpr) accessed {
	call := parent.AsCall()

	switch name, args := call.FunctionName(), call.Args(); {
	case name == callHasValue:
		return accessed{}
	case name == callDyn, name == callOptionalOf, name == callValue,
		name == operators.Conditional && e.ID() != args[0].ID():
		return fieldsOf(parent)
	case len(args) != binary:
		return accessed{all: true}
	case name == operators.Index || name == operators.OptIndex || name == operators.OptSelect:
		return fieldOfKey(e, args[0], args[1])
	case name == operators.In:
		return fieldOfKey(e, args[1], args[0])
	default:
		return accessed{all: true}
	}
}

// fieldOfKey is the field that a key names, where the value is what it is looked up in.
func fieldOfKey(e, operand, key ast.Expr) accessed {
	if e.ID() != operand.ID() || key.Kind() != ast.LiteralKind {
		return accessed{all: true}
	}

	name, ok := key.AsLiteral().Value().(string)
	if !ok {
		return accessed{all: true}
	}

	return accessed{names: []string{name}}
}

// fieldsOfMacro are those that are read of the variable that a macro makes of a value, as
// optMap does, or of the value of the macro, where it is that.
func fieldsOfMacro(e, macro ast.NavigableExpr) accessed {
	c := macro.AsComprehension()
	if e.ID() == c.Result().ID() {
		return fieldsOf(macro)
	}

	if e.ID() != c.AccuInit().ID() {
		return accessed{all: true}
	}

	var out accessed

	for _, use := range ast.MatchDescendants(macro, func(e ast.NavigableExpr) bool {
		return e.Kind() == ast.IdentKind && e.AsIdent() == c.AccuVar()
	}) {
		by, ok := binder(use)
		if !ok || by.ID() != macro.ID() || use.ID() == c.LoopStep().ID() {
			continue
		}

		more := fieldsOf(use)

		out = accessed{names: append(out.names, more.names...), all: out.all || more.all}
	}

	return out
}
