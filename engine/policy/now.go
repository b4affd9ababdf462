// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// ReadsNow reports whether an expression may read the time of the decision: what it says may
// be something else at any moment, and nothing tells when.
func ReadsNow(text string) bool {
	if !strings.Contains(text, expression.VarNow) { // As of nearly all.
		return false
	}

	env, err := expression.Env()
	if err != nil {
		return false
	}

	tree, iss := env.Parse(text)
	if iss != nil && iss.Err() != nil {
		return false // It does not compile, and is not evaluated.
	}

	// Also a name of a macro's own, which costs little.
	return len(ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), func(e ast.NavigableExpr) bool {
		return e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == expression.VarNow
	})) > 0
}

// ReadsNow reports whether a policy may read the time of a decision, be it in Shadow mode.
func (s *Set) ReadsNow() bool {
	if s == nil {
		return false
	}

	if s.shadow != nil {
		s = s.shadow // It has all of them.
	}

	for _, p := range s.byName {
		if p.now {
			return true
		}
	}

	return false
}
