// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import "errors"

// EvaluationError is of an expression that could not be evaluated for an object,
// and says of which policy or Enforcement.
type EvaluationError struct {
	// Kind of what the expression is in.
	Kind string
	// Name of it.
	Name string
	// Err is all that there is to say, for a person.
	Err error
}

// Error says all that there is to say.
func (e *EvaluationError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EvaluationError) Unwrap() error { return e.Err }

// EvaluationErrors are those among some problems.
func EvaluationErrors(problems ...error) []*EvaluationError {
	var out []*EvaluationError

	for _, err := range problems {
		if e := (*EvaluationError)(nil); errors.As(err, &e) {
			out = append(out, e)
		}
	}

	return out
}
