// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// Written is an expression as it is written in an object.
type Written struct {
	// Text of the expression.
	Text string
	// Role of it.
	Role expression.Role
	// Variable is the name of the variable that it gives; empty for other roles.
	Variable string
	// At is where it is written.
	At *field.Path
}

// Expressions returns all CEL expressions of what a policy matches, variables first.
func Expressions(match *v1alpha1.Match) []Written {
	out := make([]Written, 0, len(match.Variables)+len(match.CEL)+2*len(match.MatchConditions))
	at := field.NewPath("spec", "match")

	for i, v := range match.Variables {
		out = append(out, Written{v.Expression, expression.RoleVariable, v.Name, at.Child("variables").Index(i).Child("expression")})
	}

	for i, text := range match.CEL {
		out = append(out, Written{Text: text, Role: expression.RoleCondition, At: at.Child("cel").Index(i)})
	}

	for i, c := range match.MatchConditions {
		at := at.Child("matchConditions").Index(i)
		out = append(out, Written{Text: c.Expression, Role: expression.RoleCondition, At: at.Child("expression")})

		if c.MessageExpression != "" {
			out = append(out, Written{Text: c.MessageExpression, Role: expression.RoleMessage, At: at.Child("messageExpression")})
		}
	}

	return out
}
