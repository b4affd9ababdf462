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
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
)

// collectFor is how long the metric may wait for the cache.
const collectFor = 5 * time.Second

// NotReady reports how many policies, bindings, windows and Enforcements are not in force, by
// their conditions.
type NotReady struct{ Reader client.Reader }

func policiesDesc() *prometheus.Desc {
	return prometheus.NewDesc("kausality_policies",
		"AllowancePolicies, AllowanceBindings, UpgradeAllowances and Enforcements there are, by kind and readiness: Ready, NotReady, or "+
			"Shadow of AllowancePolicies that are ready and allow nothing, for their enforcementMode is Shadow.",
		[]string{object.LabelKind, "state"}, nil)
}

func notReadyDesc() *prometheus.Desc {
	return prometheus.NewDesc("kausality_policies_not_ready",
		"AllowancePolicies, AllowanceBindings, UpgradeAllowances and Enforcements whose condition Ready is not True, by kind "+
			"and the condition's reason; Unobserved where the manager has not looked at the present generation. "+
			"0 for a kind of which all are ready.",
		[]string{object.LabelKind, "reason"}, nil)
}

// Describe implements prometheus.Collector.
func (*NotReady) Describe(out chan<- *prometheus.Desc) {
	out <- policiesDesc()
	out <- notReadyDesc()
}

// Collect implements prometheus.Collector. What cannot be listed is left out.
func (n *NotReady) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectFor)
	defer cancel()

	reasons, states := n.count(ctx)
	report := func(desc *prometheus.Desc, counts map[string]map[string]int) {
		for kind, of := range counts {
			for label, number := range of {
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(number), kind, label)
			}
		}
	}

	report(notReadyDesc(), reasons)
	report(policiesDesc(), states)
}

// States of policies and the like.
const (
	stateReady    = "Ready"
	stateNotReady = "NotReady"
	stateShadow   = "Shadow"
)

// count counts those that are not ready, by kind and reason, and all, by kind and state.
func (n *NotReady) count(ctx context.Context) (reasons, states map[string]map[string]int) {
	policies := &v1alpha1.AllowancePolicyList{}
	bindings := &v1alpha1.AllowanceBindingList{}
	windows := &v1alpha1.UpgradeAllowanceList{}
	enforcements := &v1alpha1.EnforcementList{}
	reasons, states = map[string]map[string]int{}, map[string]map[string]int{}

	add := func(kind, ready string, generation int64, conditions []metav1.Condition) {
		if reason, _, not := audit.Unready(generation, conditions); not {
			reasons[kind][reason]++
			states[kind][stateNotReady]++
		} else {
			states[kind][ready]++
		}
	}

	for kind, list := range map[string]client.ObjectList{
		v1alpha1.KindPolicy: policies, v1alpha1.KindBinding: bindings, v1alpha1.KindUpgrade: windows,
		v1alpha1.KindEnforcement: enforcements,
	} {
		if n.Reader.List(ctx, list, client.UnsafeDisableDeepCopy) == nil {
			reasons[kind] = map[string]int{v1alpha1.ReasonInvalid: 0} // So that who watches it sees it go down.
			states[kind] = map[string]int{stateReady: 0, stateNotReady: 0}
		}
	}

	for i := range policies.Items {
		ready := stateReady
		if policies.Items[i].Spec.EnforcementMode == v1alpha1.EnforcementModeShadow {
			ready = stateShadow
		}

		add(v1alpha1.KindPolicy, ready, policies.Items[i].GetGeneration(), policies.Items[i].Status.Conditions)
	}

	for i := range bindings.Items {
		add(v1alpha1.KindBinding, stateReady, bindings.Items[i].GetGeneration(), bindings.Items[i].Status.Conditions)
	}

	for i := range windows.Items {
		add(v1alpha1.KindUpgrade, stateReady, windows.Items[i].GetGeneration(), windows.Items[i].Status.Conditions)
	}

	for i := range enforcements.Items {
		add(v1alpha1.KindEnforcement, stateReady, enforcements.Items[i].GetGeneration(), enforcements.Items[i].Status.Conditions)
	}

	return reasons, states
}
