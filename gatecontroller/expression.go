// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// expressions counts those that could not be evaluated. The nil one counts
// nothing.
type expressions struct{ failed *prometheus.CounterVec }

func newExpressions() *expressions {
	return &expressions{failed: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kausality_gate_expression_errors_total",
		Help: "CEL expressions that could not be evaluated when a gate was looked at, such as closeWhen, or when a deletion was passed on, " +
			"by the kind and name of the AllowancePolicy or Enforcement.",
	}, []string{labelKind, "name"})}
}

// count counts the expressions among problems.
func (e *expressions) count(problems ...error) {
	if e == nil {
		return
	}

	for _, f := range policy.EvaluationErrors(problems...) {
		e.failed.WithLabelValues(f.Kind, f.Name).Inc()
	}
}
