// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// Constant is what an expression gives that reads nothing, and so is true or false of every
// change; ok is false of others, and of those that do not compile.
func Constant(text string) (value, ok bool) {
	env, err := policyEnv()
	if err != nil {
		return false, false
	}

	e, tree, err := compileIn(env, text)
	if err != nil || readsAnything(tree) {
		return false, false
	}

	value, _, err = e.Eval(Input{})

	return value, err == nil
}

// readsAnything reports whether an expression names a variable.
func readsAnything(tree *cel.Ast) bool {
	return len(ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), isName)) > 0
}
