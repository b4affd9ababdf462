// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
	"github.com/kausality-io/kausality-crossplane/internal/logfile"
	"github.com/kausality-io/kausality-crossplane/webhook/certificate"
)

// Metrics of the webhook.
type Metrics struct {
	decisions *prometheus.CounterVec
	shadow    *prometheus.CounterVec
	overruled *prometheus.CounterVec
	conflicts *prometheus.CounterVec
	liveReads *prometheus.CounterVec
	failures  *prometheus.CounterVec
	uses      *prometheus.CounterVec
	// expressions are those that could not be evaluated.
	expressions *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	log         logfile.Counters
	// enforced are decisions by Enforcement, costs what policies' expressions cost.
	enforced *prometheus.CounterVec
	costs    *prometheus.HistogramVec
}

// NewMetrics registers the webhook's metrics, and when its certificate ends.
func NewMetrics(reg prometheus.Registerer, served certificate.Expiring) (*Metrics, error) {
	kind := []string{"group", "kind"}

	m := &Metrics{
		log: logCounters(),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_decisions_total",
			Help: "Decisions about changes of governed objects, by what was decided and, of the change that tells most, rule and policy.",
		}, append(slices.Clone(kind), "operation", "decision", "rule", "policy")),
		shadow: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_shadow_total",
			Help: "Changes that would be decided otherwise if what is in Shadow mode were enforced, by what would be decided, the policy " +
				"that would allow them, or not, and the condition of it that is in Shadow mode; empty where the policy is as a whole.",
		}, append(slices.Clone(kind), "operation", "verdict", "policy", "condition")),
		overruled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_overruled_total",
			Help: "Values of our own annotations, and of spec.managementPolicies from before a gate was moved, " +
				"that a writer asked for and that were not stored.",
		}, kind),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_conflicts_total",
			Help: "Requests that had to be made again, because something else changed the object after us.",
		}, kind),
		liveReads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_live_reads_total",
			Help: "Parents that were read from the API server, because the cache did not know them or did not allow the change.",
		}, kind),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_failures_total",
			Help: "Requests that could not be decided because of an error, by answer: Refused where an Enforcement insists, " +
				"or else Admitted as they were.",
		}, append(slices.Clone(kind), "answer")),
		uses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_window_uses_total",
			Help: "Creations, updates and deletions of which a window, the UpgradeAllowance, allowed at least one change. One that another " +
				"webhook refuses, or that loses against another write, counts too.",
		}, []string{"window"}),
		expressions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_expression_errors_total",
			Help: "CEL expressions that could not be evaluated for a request, by the kind and name of the AllowancePolicy or Enforcement. " +
				"Those of a policy then allow nothing.",
		}, []string{"kind", "name"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kausality_webhook_request_seconds",
			Help:    "How long admission requests took, by endpoint.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}, []string{"endpoint"}),
	}

	m.enforced, m.costs = byPolicy()

	if err := m.register(reg, expiryOf(served)); err != nil {
		return nil, err
	}

	return m, nil
}

// register makes the metrics visible, with another one.
func (m *Metrics) register(reg prometheus.Registerer, another prometheus.Collector) error {
	for _, c := range append(m.log.Collectors(),
		another, m.decisions, m.shadow, m.overruled, m.conflicts, m.liveReads, m.failures, m.uses, m.expressions, m.seconds,
		m.enforced, m.costs,
	) {
		if err := reg.Register(c); err != nil {
			return err
		}
	}

	return nil
}

// logCounters are those of the log of decisions.
func logCounters() logfile.Counters {
	return logfile.Counters{
		Bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kausality_webhook_decision_log_bytes_total",
			Help: "Bytes that were written to the decision log.",
		}),
		Decisions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kausality_webhook_decision_log_decisions_total",
			Help: "Decisions that were written to the decision log.",
		}),
		Dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_webhook_decision_log_dropped_total",
			Help: "Decisions that were left out of the decision log, " + logfile.DroppedHelp,
		}, []string{"reason"}),
	}
}

// Log counts what is written to the log of decisions.
func (m *Metrics) Log() logfile.Counters { return m.log }

// expiryOf tells when a certificate ends.
func expiryOf(served certificate.Expiring) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kausality_webhook_certificate_expiry_timestamp_seconds",
		Help: "When the certificate that is served ends, in seconds since 1970.",
	}, func() float64 { return float64(served.NotAfter().Unix()) })
}

// byPolicy makes the metrics about single policies and Enforcements.
func byPolicy() (enforced *prometheus.CounterVec, costs *prometheus.HistogramVec) {
	enforced = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kausality_webhook_enforcement_decisions_total",
		Help: "Decisions about changes of objects that an Enforcement governs, by its name and what was decided; one that several " +
			"govern counts for each.",
	}, []string{"enforcement", "decision"})
	costs = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kausality_webhook_policy_cost",
		Help: "What the CEL expressions of an AllowancePolicy cost each time that they were evaluated for a request, in CEL's units, by the " +
			"policy's name. They may cost 10000000.",
		Buckets: expression.CostBuckets(),
	}, []string{"policy"})

	return enforced, costs
}

func (m *Metrics) decided(gvk schema.GroupVersionKind, operation request.Operation, d *decision.Decision) {
	f, _ := d.Lead()

	m.decisions.WithLabelValues(gvk.Group, gvk.Kind, string(operation), string(d.Outcome()), string(f.Rule), f.Policy).Inc()
	m.overruled.WithLabelValues(gvk.Group, gvk.Kind).Add(float64(len(d.Overruled)))

	for _, e := range d.Governing() {
		m.enforced.WithLabelValues(e.Name, string(d.Outcome())).Inc()
	}

	for _, c := range d.Costs {
		m.costs.WithLabelValues(c.Policy).Observe(float64(c.Units))
	}

	for _, f := range d.Shadow {
		m.shadow.WithLabelValues(gvk.Group, gvk.Kind, string(operation), string(f.Finding.Verdict), f.By.Policy, f.By.Condition).Inc()
	}
}

func (m *Metrics) conflicted(gvk schema.GroupVersionKind) {
	m.conflicts.WithLabelValues(gvk.Group, gvk.Kind).Inc()
}

func (m *Metrics) failed(gvk schema.GroupVersionKind, answer string) {
	m.failures.WithLabelValues(gvk.Group, gvk.Kind, answer).Inc()
}

func (m *Metrics) readAgain(gvk schema.GroupVersionKind) {
	m.liveReads.WithLabelValues(gvk.Group, gvk.Kind).Inc()
}

// windows counts the windows that allow a request.
func (m *Metrics) windows(req admission.Request, ask *request.Request, d *decision.Decision) {
	if m == nil || req.DryRun != nil && *req.DryRun {
		return
	}

	for _, name := range upgradeallowance.UsedBy(ask, d) {
		m.Used(name)
	}
}

// Used counts a use of a window.
func (m *Metrics) Used(window string) { m.uses.WithLabelValues(window).Inc() }

// unevaluated counts the expressions among problems.
func (m *Metrics) unevaluated(problems []error) {
	for _, e := range expression.EvaluationErrors(problems...) {
		m.expressions.WithLabelValues(e.Kind, e.Name).Inc()
	}
}

func (m *Metrics) took(endpoint string, since time.Time) {
	m.seconds.WithLabelValues(endpoint).Observe(time.Since(since).Seconds())
}
