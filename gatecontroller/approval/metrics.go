// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Metrics of what ChangeApprovals come to.
type Metrics struct{ total *prometheus.CounterVec }

// NewMetrics makes Metrics, and registers them. An error means that they are registered already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kausality_approvals_total",
		Help: "How often a change of a ChangeApproval came into a state, by its decision, Approve, Reject or BreakGlass, and the state: " +
			"Waiting for more approvals, Granted, Applied, Superseded, Expired, NotAllowed, Rejected.",
	}, []string{"decision", "state"})}

	if err := reg.Register(m.total); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}

	// It is there from the beginning, for of a series that begins with the first one the increase
	// is none, and an alert goes by that.
	m.total.WithLabelValues(string(v1alpha1.DecisionBreakGlass), string(v1alpha1.ApprovalStateGranted))

	return m, nil
}

// count counts the changes of a ChangeApproval that are in another state than they were.
func (m *Metrics) count(was, is *v1alpha1.ChangeApproval) {
	if m == nil {
		return
	}

	decision := is.Spec.Decision
	if decision == "" {
		decision = v1alpha1.DecisionApprove
	}

	for _, d := range is.Status.Changes {
		if !slices.ContainsFunc(was.Status.Changes, func(o v1alpha1.ChangeDecision) bool { return o.Digest == d.Digest && o.State == d.State }) {
			m.total.WithLabelValues(string(decision), string(d.State)).Inc()
		}
	}
}
