// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// A chain of changes starts with a request of somebody, at some time. What is known of
// that request alone decides where the chain starts: further down other users carry it
// on, later, and a change that was allowed is not to stop half-way.

// atStart reports whether a field of request is known only where a chain starts. The
// others mean the same all along it.
func atStart(name string) bool { return name == "userInfo" || name == "options" || name == "dryRun" }

// ofStart reports whether an expression reads what is known only where a chain starts:
// now, the authorizer, and of request who asks, and how. Variables are those that read it.
func ofStart(tree *cel.Ast, variables map[string]bool) bool {
	found := ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), func(e ast.NavigableExpr) bool {
		if e.Kind() != ast.IdentKind || bound(e) {
			return false
		}

		switch e.AsIdent() {
		case varNow, varAuthorizer, varOwnCheck:
			return true
		case varRequest:
			name, ok := selected(e)

			return !ok || atStart(name)
		case varVariables:
			name, ok := selected(e)

			return ok && variables[name] || !ok && slices.Contains(slices.Collect(maps.Values(variables)), true)
		default:
			return false
		}
	})

	return len(found) > 0
}

// readsParent reports whether an expression reads the parent of the object.
func readsParent(tree *cel.Ast) bool {
	return len(ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), func(e ast.NavigableExpr) bool {
		return e.Kind() == ast.IdentKind && e.AsIdent() == varParent && !bound(e)
	})) > 0
}

// bound reports whether a name is one of a macro around it, as x is in all(x, x > 0).
func bound(e ast.NavigableExpr) bool {
	for at := e; ; {
		parent, ok := at.Parent()
		if !ok {
			return false
		}

		if parent.Kind() == ast.ComprehensionKind {
			c := parent.AsComprehension()
			if name := e.AsIdent(); at.ID() != c.IterRange().ID() && (name == c.IterVar() || name == c.IterVar2() || name == c.AccuVar()) {
				return true
			}
		}

		at = parent
	}
}

// selected is the field that an expression selects of a name.
func selected(e ast.NavigableExpr) (string, bool) {
	parent, ok := e.Parent()
	if !ok || parent.Kind() != ast.SelectKind {
		return "", false
	}

	return parent.AsSelect().FieldName(), true
}

// metBelow warns of a condition that decides only where a chain starts.
const metBelow = "it reads now, the authorizer, or who asks and how: it decides who may initiate a change, " +
	"and counts as met where another policy or a window led to the change"

// CheckStart says which conditions of a policy that also serves below a root count as
// met there. Given are the permissions that other policies and windows give.
func (p *Policy) CheckStart(given []v1alpha1.Permission) []v1alpha1.TypeCheckingWarning {
	if !slices.ContainsFunc(given, p.reachedBy) {
		return nil
	}

	var out []v1alpha1.TypeCheckingWarning

	match := field.NewPath("spec", "match")

	for i, c := range p.conditions {
		if !c.ofStart {
			continue
		}

		at := match.Child("cel").Index(i)
		if n := len(p.spec.Match.CEL); i >= n {
			at = match.Child("matchConditions").Index(i - n)
		}

		out = append(out, v1alpha1.TypeCheckingWarning{Field: at.String(), Warning: metBelow})
	}

	return out
}
