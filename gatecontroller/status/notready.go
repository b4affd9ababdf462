// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
)

// collectFor is how long the metric may wait for the cache.
const collectFor = 5 * time.Second

// NotReady reports how many policies, bindings, windows and Enforcements are not in force, by
// their conditions.
type NotReady struct{ Reader client.Reader }

func notReadyDesc() *prometheus.Desc {
	return prometheus.NewDesc("kausality_policies_not_ready",
		"AllowancePolicies, AllowanceBindings, UpgradeAllowances and Enforcements whose condition Ready is not True, by kind "+
			"and the condition's reason; Unobserved where the manager has not looked at the present generation. "+
			"0 for a kind of which all are ready.",
		[]string{object.LabelKind, "reason"}, nil)
}

// Describe implements prometheus.Collector.
func (*NotReady) Describe(out chan<- *prometheus.Desc) { out <- notReadyDesc() }

// Collect implements prometheus.Collector. What cannot be listed is left out.
func (n *NotReady) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectFor)
	defer cancel()

	desc := notReadyDesc()

	for kind, reasons := range n.count(ctx) {
		for reason, number := range reasons {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(number), kind, reason)
		}
	}
}

// count counts those that are not ready, by kind and reason.
func (n *NotReady) count(ctx context.Context) map[string]map[string]int {
	policies := &v1alpha1.AllowancePolicyList{}
	bindings := &v1alpha1.AllowanceBindingList{}
	windows := &v1alpha1.UpgradeAllowanceList{}
	enforcements := &v1alpha1.EnforcementList{}
	out := map[string]map[string]int{}

	add := func(kind string, generation int64, conditions []metav1.Condition) {
		if reason, _, not := audit.Unready(generation, conditions); not {
			out[kind][reason]++
		}
	}

	for kind, list := range map[string]client.ObjectList{
		policy.KindPolicy: policies, policy.KindBinding: bindings, policy.KindUpgrade: windows, policy.KindEnforcement: enforcements,
	} {
		if n.Reader.List(ctx, list, client.UnsafeDisableDeepCopy) == nil {
			out[kind] = map[string]int{v1alpha1.ReasonInvalid: 0} // So that who watches it sees it go down.
		}
	}

	for i := range policies.Items {
		add(policy.KindPolicy, policies.Items[i].GetGeneration(), policies.Items[i].Status.Conditions)
	}

	for i := range bindings.Items {
		add(policy.KindBinding, bindings.Items[i].GetGeneration(), bindings.Items[i].Status.Conditions)
	}

	for i := range windows.Items {
		add(policy.KindUpgrade, windows.Items[i].GetGeneration(), windows.Items[i].Status.Conditions)
	}

	for i := range enforcements.Items {
		add(policy.KindEnforcement, enforcements.Items[i].GetGeneration(), enforcements.Items[i].Status.Conditions)
	}

	return out
}
