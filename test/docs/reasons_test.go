// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// inOrder are the reasons of conditions that nobody has to look up, and why.
func inOrder() map[string]string {
	return map[string]string{
		"InForce":  "it is as it should be",
		"Shadow":   "its enforcementMode says so",
		"Readable": "they are as they should be",
		"Active":   "it is as it should be",
		"Allowed":  "nothing is held",
		"Held":     "the table goes by the condition's message, which says what",
		"NotRun":   "likewise",
		"Approved": "nobody has to decide any more",
		"Applied":  "it is made",
		"Current":  "the list is of now",
	}
}

// TestEveryReasonOfAConditionIsExplained where people look for what is not as it should be.
func TestEveryReasonOfAConditionIsExplained(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| .+ \\|$").FindAllSubmatch(text(t, filepath.Join(root, "docs", "operations.md")), -1)
	explained := map[string]bool{}

	for _, m := range rows {
		explained[string(m[1])] = true
	}

	reasons := reasonsOfConditions(t)
	if len(reasons) < 20 {
		t.Fatalf("%d reasons of conditions are found, want at least 20", len(reasons))
	}

	for reason := range reasons {
		switch why, ok := inOrder()[reason]; {
		case !ok && !explained[reason]:
			t.Errorf("docs/operations.md has no row for the reason %q", reason)
		case ok && explained[reason]:
			t.Errorf("docs/operations.md has a row for the reason %q, for which none is needed, as %s", reason, why)
		}
	}

	for reason := range inOrder() {
		if !reasons[reason] {
			t.Errorf("no condition has the reason %q", reason)
		}
	}

	for reason := range explained {
		if !reasons[reason] {
			t.Errorf("docs/operations.md explains the reason %q, which no condition has", reason)
		}
	}
}

// reasonsOfConditions are those that the API names: the constants Reason..., those of events
// aside.
func reasonsOfConditions(t *testing.T) map[string]bool {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(root, "apis", "v1alpha1", "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]bool{}

	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || len(spec.Values) != 1 {
				return true
			}

			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}

				out[value] = true
			}

			return true
		})
	}

	return out
}
