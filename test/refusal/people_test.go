// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// mayRead are the files that read a text with a regular expression, or search a message, and of what.
func mayRead() map[string]string {
	return map[string]string{
		"engine/mask/name.go":            "URLs, for credentials in them",
		"engine/gate/managed/ungated.go": "what a provider says, which has no other form",
		"engine/gate/managed/gone.go":    "what a provider says, which has no other form",
	}
}

// TestNoTextForPeopleIsRead by what decides: it reads typed fields.
func TestNoTextForPeopleIsRead(t *testing.T) {
	const root = "../.."

	files, found := 0, map[string]bool{}

	for _, dir := range []string{"apis", "engine", "fn", "webhook", "gatecontroller"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}

			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}

			files++

			if name, _ := filepath.Rel(root, path); readsText(parsed) {
				found[name] = true
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	for name := range found {
		if mayRead()[name] == "" {
			t.Errorf("%s reads a text: give it a typed field", name)
		}
	}

	for name := range mayRead() {
		if !found[name] {
			t.Errorf("%s reads no text any more: take it out of the list", name)
		}
	}

	if files < 300 {
		t.Errorf("only %d files were looked at", files)
	}
}

// readsText reports whether a file has a regular expression, or searches in a message.
func readsText(file *ast.File) bool {
	out := false

	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}

		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}

		pkg, ok := fun.X.(*ast.Ident)
		if !ok {
			return true
		}

		switch {
		case pkg.Name == "regexp":
			out = true
		case pkg.Name == "strings" && searches(fun.Sel.Name):
			for _, arg := range call.Args {
				if s, ok := arg.(*ast.SelectorExpr); ok && (s.Sel.Name == "Message" || s.Sel.Name == "Reason" || s.Sel.Name == "Missing") {
					out = true
				}
			}
		}

		return true
	})

	return out
}

// searches reports whether a function of package strings looks for something in a text.
func searches(name string) bool {
	for _, part := range []string{"Contains", "HasPrefix", "HasSuffix", "Cut", "Index", "Split", "Fields", "EqualFold"} {
		if strings.HasPrefix(name, part) {
			return true
		}
	}

	return false
}
