// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
)

// counted is how often changes came into states, by DECISION STATE.
func counted(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]float64{}

	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := make([]string, len(m.GetLabel()))
			for i, l := range m.GetLabel() {
				labels[i] = l.GetValue()
			}

			if n := m.GetCounter().GetValue(); n > 0 {
				out[f.GetName()+" "+strings.Join(labels, " ")] = n
			}
		}
	}

	return out
}

func TestChangesAreCountedOnceInEachStateTheyComeInto(t *testing.T) {
	t.Parallel()

	const one, two = "sha256:1", "sha256:2"

	type states map[string]v1alpha1.ApprovalState

	for name, tc := range map[string]struct {
		decision v1alpha1.ApprovalDecision
		// steps are what is decided, one after the other.
		steps []states
		// stale has each step be from before the one before it was written.
		stale bool
		want  map[string]float64
	}{
		"EachChangeOnItsWay": {
			decision: v1alpha1.DecisionApprove,
			steps: []states{
				{one: v1alpha1.ApprovalStateGranted, two: v1alpha1.ApprovalStateGranted},
				{one: v1alpha1.ApprovalStateApplied, two: v1alpha1.ApprovalStateGranted},
				{one: v1alpha1.ApprovalStateApplied, two: v1alpha1.ApprovalStateSuperseded},
			},
			want: map[string]float64{
				"kausality_approvals_total Approve Granted": 2, "kausality_approvals_total Approve Applied": 1, "kausality_approvals_total Approve Superseded": 1,
			},
		},
		"WhatStaysAsItIsNotAgain": {
			decision: v1alpha1.DecisionReject,
			steps:    []states{{one: v1alpha1.ApprovalStateRejected}, {one: v1alpha1.ApprovalStateRejected}},
			want:     map[string]float64{"kausality_approvals_total Reject Rejected": 1},
		},
		"WhatIsBackInAState": {
			decision: v1alpha1.DecisionApprove,
			steps:    []states{{one: v1alpha1.ApprovalStateGranted}, {one: v1alpha1.ApprovalStateRejected}, {one: v1alpha1.ApprovalStateGranted}},
			want:     map[string]float64{"kausality_approvals_total Approve Granted": 2, "kausality_approvals_total Approve Rejected": 1},
		},
		"WithoutADecisionItApproves": {
			steps: []states{{one: v1alpha1.ApprovalStateWaiting}},
			want:  map[string]float64{"kausality_approvals_total Approve Waiting": 1},
		},
		"WhatIsNotWritten": {
			decision: v1alpha1.DecisionApprove, stale: true,
			steps: []states{{one: v1alpha1.ApprovalStateGranted}, {one: v1alpha1.ApprovalStateApplied}},
			want:  map[string]float64{"kausality_approvals_total Approve Granted": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, reg := counting(t)
			key := client.ObjectKey{Namespace: "team", Name: "ok"}

			made := &v1alpha1.ChangeApproval{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			made.Spec.Decision = tc.decision

			if err := s.Client.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}

			for i, step := range tc.steps {
				by := made
				if !tc.stale {
					by = get(t.Context(), t, s.Client, key)
				}

				var decisions []v1alpha1.ChangeDecision

				for _, digest := range []string{one, two} {
					if state := step[digest]; state != "" {
						decisions = append(decisions, v1alpha1.ChangeDecision{Digest: digest, State: state})
					}
				}

				w := &writer{settler: s, written: map[types.UID]*v1alpha1.ChangeApproval{}}
				written := []approval.Written{{Approval: by, Status: v1alpha1.ChangeApprovalStatus{Changes: decisions}}}

				if err := w.statuses(t.Context(), written); apierrors.IsConflict(err) != (tc.stale && i > 0) {
					t.Fatal(err)
				}
			}

			if diff := cmp.Diff(tc.want, counted(t, reg)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// counting is a Settler that counts.
func counting(t *testing.T) (*Settler, prometheus.Gatherer) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	reg := prometheus.NewRegistry()

	m, err := NewMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}

	return &Settler{
		Client:  fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.ChangeApproval{}).Build(),
		Metrics: m, Now: func() time.Time { return time.Unix(0, 0) },
	}, reg
}

func get(ctx context.Context, t *testing.T, c client.Client, key client.ObjectKey) *v1alpha1.ChangeApproval {
	t.Helper()

	out := &v1alpha1.ChangeApproval{}
	if err := c.Get(ctx, key, out); err != nil {
		t.Fatal(err)
	}

	return out
}
