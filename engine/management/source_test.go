// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// runtimeSets reads what crossplane-runtime's resolver accepts from its source:
// package managed would pull in half of Kubernetes, and needs modules that this
// one does not.
func runtimeSets(tb testing.TB) [][]string {
	tb.Helper()

	dir, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/crossplane/crossplane-runtime/v2").Output()
	if err != nil {
		tb.Fatal(err)
	}

	path := filepath.Join(strings.TrimSpace(string(dir)), "pkg", "reconciler", "managed", "policies.go")

	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		tb.Fatal(err)
	}

	var sets [][]string

	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "defaultSupportedManagementPolicies" {
			continue
		}

		ast.Inspect(f.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				sets = append(sets, actionsIn(tb, call))
			}

			return true
		})
	}

	return sets
}

// actionsIn reads one sets.New[xpv2.ManagementAction](xpv2.ManagementActionX, ...).
func actionsIn(tb testing.TB, call *ast.CallExpr) []string {
	tb.Helper()

	out := make([]string, 0, len(call.Args))

	for _, arg := range call.Args {
		sel, ok := arg.(*ast.SelectorExpr)
		if !ok || !strings.HasPrefix(sel.Sel.Name, "ManagementAction") {
			tb.Fatalf("cannot read argument %T", arg)
		}

		action := strings.TrimPrefix(sel.Sel.Name, "ManagementAction")
		if action == "All" {
			action = management.ActionAll
		}

		out = append(out, action)
	}

	return out
}

func TestTheSupportedSetsAreCrossplaneRuntimes(t *testing.T) {
	theirs := runtimeSets(t)
	if len(theirs) != 15 {
		t.Errorf("crossplane-runtime lists %d sets, not 15: has its source changed?", len(theirs))
	}

	actions := []string{management.ActionObserve, management.ActionLateInitialize, management.ActionCreate, management.ActionUpdate, management.ActionDelete}
	want, got := map[string]bool{}, map[string]bool{}

	for bits := range 1 << len(actions) {
		var set []string

		for i, a := range actions {
			if bits&(1<<i) != 0 {
				set = append(set, a)
			}
		}

		name := strings.Join(set, " ")
		got[name] = management.Supported(set)
		// The empty set pauses: it is accepted, and no state of a gate.
		want[name] = len(set) > 0 && slices.ContainsFunc(theirs, func(s []string) bool { return management.Same(s, set) })
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Supported, -crossplane-runtime, +gate:\n%s", diff)
	}
}
