// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
)

// Role is what an expression is for.
type Role int

// Roles.
const (
	// RoleVariable gives a value of any type.
	RoleVariable Role = iota
	// RoleCondition gives true or false.
	RoleCondition
	// RoleMessage gives text.
	RoleMessage
)

// Check reports a type that an expression of the role may not give.
func (r Role) Check(t *cel.Type) error {
	want, not := cel.BoolType, errNotBool
	if r == RoleMessage {
		want, not = cel.StringType, errNotText
	}

	if r == RoleVariable || t.IsExactType(want) || t.IsExactType(cel.DynType) {
		return nil
	}

	return fmt.Errorf("%w but %s", not, t)
}

// errNotText is the cause when a messageExpression gives something else than text.
var errNotText = errors.New("it does not give text")
