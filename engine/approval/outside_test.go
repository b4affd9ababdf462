// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
)

// outside is a change of the external object of a child, which itself carries what approves its revert.
func outside(n int) v1alpha1.HeldChange {
	ref := childRef(n)

	return v1alpha1.HeldChange{
		Ref: ref, Parent: &ref, Field: "spec.forProvider.size", Digest: sum(n), Follows: []string{"Update"},
		Cause: &v1alpha1.Cause{Type: v1alpha1.CauseDrift},
	}
}

// gated gives a child the record of a gate.
func gated(rec v1alpha1.GateRecord) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		rec.V, rec.Since = v1alpha1.RecordVersion, metav1.NewTime(start)
		text, _ := allowance.FormatGate(rec)
		u.SetAnnotations(map[string]string{v1alpha1.AnnotationGate: text})
	}
}

func TestAnApprovalOfDriftIsGivenToTheManagedResource(t *testing.T) {
	cha := by("a", "eva", 1)
	given := approval.Allowances(outside(1), &cha, 7, nil)

	for name, tc := range map[string]struct {
		reason  string
		held    bool
		carried []v1alpha1.Allowance
		gate    v1alpha1.GateRecord
		add     bool
		remove  bool
		state   v1alpha1.ApprovalState
	}{
		"Held":    {reason: "Its gate is to open.", held: true, gate: v1alpha1.GateRecord{State: v1alpha1.GateClosed, Consumed: 3}, add: true, state: v1alpha1.ApprovalStateGranted},
		"Carried": {reason: "It carries that.", held: true, carried: given, gate: v1alpha1.GateRecord{State: v1alpha1.GateClosed, Consumed: 3}, state: v1alpha1.ApprovalStateGranted},
		"Open": {
			reason: "Its gate is open for it.", carried: given,
			gate: v1alpha1.GateRecord{State: v1alpha1.GateOpen, Actions: []string{"Update"}, Consumed: 3, Allowances: given[1:]}, state: v1alpha1.ApprovalStateGranted,
		},
		"Closed": {reason: "It was.", carried: given[:1], gate: v1alpha1.GateRecord{State: v1alpha1.GateClosed, Consumed: 7}, remove: true, state: v1alpha1.ApprovalStateApplied},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			in.Parents = append(in.Parents, approval.Parent{Ref: childRef(1), Generation: 7, Allowances: tc.carried})
			seenBy(&in)[childRef(1)] = child(1, gated(tc.gate))
			vote := later(cha, 30*time.Minute)

			if tc.held {
				in.Status.Changes, in.Status.Total = []v1alpha1.HeldChange{outside(1)}, 1
			}

			if len(tc.carried) > 0 {
				ref, since := childRef(1), metav1.NewTime(start.Add(-time.Minute))
				vote.Status.Changes = []v1alpha1.ChangeDecision{{
					Digest: sum(1), Ref: ref, Parent: &ref, Field: "spec.forProvider.size", State: v1alpha1.ApprovalStateGranted, Since: &since,
				}}
			}

			in.Approvals = []v1alpha1.ChangeApproval{vote}
			plan := compute(t, in)

			add := slices.ContainsFunc(plan.Parents, func(w approval.ParentWrite) bool { return w.Ref.UID == childRef(1).UID && len(w.Add) == 1 })
			remove := slices.ContainsFunc(plan.Parents, func(w approval.ParentWrite) bool { return w.Ref.UID == childRef(1).UID && len(w.Remove) == 1 })

			if add != tc.add || remove != tc.remove || len(plan.Edits) > 0 {
				t.Errorf("%s\nadd %v, remove %v, edits %v", tc.reason, add, remove, plan.Edits)
			}

			if len(plan.Approvals) != 1 || plan.Approvals[0].State != tc.state {
				t.Errorf("%s\napprovals %+v, want %s", tc.reason, plan.Approvals, tc.state)
			}
		})
	}
}
