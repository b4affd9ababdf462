// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// compilers are the sources of what compiles our kinds.
var compilers = []string{
	"engine/policy/*.go", "engine/expression/*.go", "engine/enforcement/*.go", "engine/upgradeallowance/*.go", "engine/change/pattern.go",
	"webhook/validate.go",
}

// sentences are the texts with which these sources report a field, and those of their errors.
func sentences(t *testing.T) []string {
	t.Helper()

	var out []string

	for _, pattern := range compilers {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: there are no files: %v", pattern, err)
		}

		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}

			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}

			ast.Inspect(tree, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && reporting(call) {
					out = append(out, literal(call.Args[len(call.Args)-1])...)
				}

				return true
			})
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// reporting is whether a call makes an error: errors.New, or one of the package field.
func reporting(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}

	from, ok := f.X.(*ast.Ident)

	return ok && (from.Name == "errors" && f.Sel.Name == "New" ||
		from.Name == "field" && slices.Contains([]string{"Invalid", "Required", "Forbidden", "TooLong", "TooMany", "TypeInvalid"}, f.Sel.Name))
}

// literal are the texts that are written in an expression.
func literal(e ast.Expr) []string {
	var out []string

	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, text)
			}
		}

		return true
	})

	return out
}
