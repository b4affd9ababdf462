// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"fmt"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/internal/logfile"
)

// Outcomes of a call.
const (
	outcomeAllowed = "allowed"
	outcomeHeld    = "held"
	outcomeFatal   = "fatal"
	outcomeAsking  = "asking"
)

// labelKind is the composite resource's kind.
const labelKind = "composite_kind"

// metrics are what a Function counts.
type metrics struct {
	calls    *prometheus.CounterVec
	held     *prometheus.CounterVec
	overdue  *prometheus.CounterVec
	repairs  *prometheus.CounterVec
	failed   *prometheus.CounterVec
	shadow   *prometheus.CounterVec
	duration prometheus.Histogram
	costs    *prometheus.HistogramVec
	log      logfile.Counters
}

func newMetrics() *metrics {
	return &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_function_calls_total",
			Help: "Calls of the function by outcome: allowed, held (something is), fatal, asking (for what it decides by: Crossplane calls " +
				"again with that).",
		}, []string{"outcome"}),
		held: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_function_held_changes_total",
			Help: "Changes that were held back, counted in every call, by the composite resource's kind.",
		}, []string{labelKind}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_function_repairs_total",
			Help: "Fields of composed resources that somebody changed by hand and that were put back, and such resources that were created " +
				"again, by the composite resource's kind.",
		}, []string{labelKind}),
		overdue: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_function_not_settled_total",
			Help: "Composite resources that count as settled though they are not, for they have been ready for --initializing-limit, by kind.",
		}, []string{labelKind}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_function_expression_errors_total",
			Help: "CEL expressions that could not be evaluated for a composed resource, by the kind and name of the AllowancePolicy " +
				"or Enforcement. Those of a policy then allow nothing.",
		}, []string{"kind", "name"}),
		shadow: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_function_shadow_total",
			Help: "Changes of composed resources that would be decided otherwise if what is in Shadow mode were enforced, counted in every " +
				"call, by the composite resource's kind, what would be decided, the policy that would allow them, or not, and the condition " +
				"of it that is in Shadow mode; empty where the policy is as a whole.",
		}, []string{labelKind, "verdict", "policy", "condition"}),
		costs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kausality_function_policy_cost",
			Help: "What the CEL expressions of an AllowancePolicy cost each time that they were evaluated for a composed resource, in CEL's " +
				"units, by the policy's name. They may cost 10000000.",
			Buckets: expression.CostBuckets(),
		}, []string{"policy"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kausality_function_decision_seconds",
			Help:    "Time from a request to its response, without gRPC.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12),
		}),
		log: logCounters(),
	}
}

// logCounters are those of the log of decisions.
func logCounters() logfile.Counters {
	return logfile.Counters{
		Bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kausality_function_decision_log_bytes_total",
			Help: "Bytes that were written to the decision log.",
		}),
		Decisions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kausality_function_decision_log_decisions_total",
			Help: "Decisions that were written to the decision log.",
		}),
		Dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_function_decision_log_dropped_total",
			Help: "Decisions that were left out of the decision log, " + logfile.DroppedHelp,
		}, []string{"reason"}),
	}
}

// register makes the metrics visible.
func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range append(m.log.Collectors(), m.calls, m.held, m.repairs, m.overdue, m.failed, m.shadow, m.duration, m.costs) {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("cannot register metrics: %w", err)
		}
	}

	return nil
}

// observe counts one call. The state is nil where the request could not be
// read, and where the answer of an XR at rest is given again: that counts as allowed.
func (m *metrics) observe(rsp *fnv1.RunFunctionResponse, s *state, took time.Duration) {
	m.duration.Observe(took.Seconds())

	outcome := outcomeAllowed

	switch {
	case s == nil:
	case s.awaited:
		outcome = outcomeAsking
	default:
		if n := len(s.held()); n > 0 {
			outcome = outcomeHeld

			m.held.WithLabelValues(s.xr.GetKind()).Add(float64(n))
		}

		if n := len(s.repaired()); n > 0 {
			m.repairs.WithLabelValues(s.xr.GetKind()).Add(float64(n))
		}

		for _, e := range expression.EvaluationErrors(s.problems...) {
			m.failed.WithLabelValues(e.Kind, e.Name).Inc()
		}

		for _, name := range s.names {
			for _, c := range s.outcomes[name].Costs {
				m.costs.WithLabelValues(c.Policy).Observe(float64(c.Units))
			}

			for _, f := range s.outcomes[name].Shadow {
				m.shadow.WithLabelValues(s.xr.GetKind(), string(f.Finding.Verdict), f.By.Policy, f.By.Condition).Inc()
			}
		}

		if s.overdue {
			m.overdue.WithLabelValues(s.xr.GetKind()).Inc()
		}
	}

	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			outcome = outcomeFatal
		}
	}

	m.calls.WithLabelValues(outcome).Inc()
}
