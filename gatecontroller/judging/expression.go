// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judging

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Expressions counts those that could not be evaluated. The nil one counts
// nothing.
type Expressions struct{ Failed *prometheus.CounterVec }

// NewExpressions makes the counter.
func NewExpressions() *Expressions {
	return &Expressions{Failed: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kausality_gate_expression_errors_total",
		Help: "CEL expressions that could not be evaluated when a gate was looked at, such as closeWhen, or when a deletion was passed on, " +
			"by the kind and name of the AllowancePolicy or Enforcement.",
	}, []string{object.LabelKind, "name"})}
}

// Count counts the expressions among problems.
func (e *Expressions) Count(problems ...error) {
	if e == nil {
		return
	}

	for _, f := range expression.EvaluationErrors(problems...) {
		e.Failed.WithLabelValues(f.Kind, f.Name).Inc()
	}
}
