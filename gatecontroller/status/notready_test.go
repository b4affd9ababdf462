// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// readyIf is the condition of an object.
func readyIf(status metav1.ConditionStatus, reason string, generation int64) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: generation}}
}

func TestWhatIsNotReadyIsCountedByReason(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Generation: 2} }
	objects := []client.Object{
		&v1alpha1.AllowancePolicy{ObjectMeta: named("good"), Status: v1alpha1.AllowancePolicyStatus{Conditions: readyIf("True", "InForce", 2)}},
		&v1alpha1.AllowancePolicy{
			ObjectMeta: named("shadow"), Spec: v1alpha1.AllowancePolicySpec{EnforcementMode: v1alpha1.EnforcementModeShadow},
			Status: v1alpha1.AllowancePolicyStatus{Conditions: readyIf("True", "Shadow", 2)},
		},
		&v1alpha1.AllowancePolicy{ObjectMeta: named("a"), Status: v1alpha1.AllowancePolicyStatus{Conditions: readyIf("False", "KindUnknown", 2)}},
		&v1alpha1.AllowancePolicy{ObjectMeta: named("b"), Status: v1alpha1.AllowancePolicyStatus{Conditions: readyIf("False", "KindUnknown", 2)}},
		&v1alpha1.AllowancePolicy{ObjectMeta: named("c"), Status: v1alpha1.AllowancePolicyStatus{Conditions: readyIf("True", "InForce", 1)}},
		&v1alpha1.UpgradeAllowance{ObjectMeta: named("w"), Status: v1alpha1.UpgradeAllowanceStatus{Conditions: readyIf("False", "Invalid", 2)}},
		&v1alpha1.Enforcement{ObjectMeta: named("e"), Status: v1alpha1.EnforcementStatus{Conditions: readyIf("True", "InForce", 2)}},
		&v1alpha1.Enforcement{ObjectMeta: named("new")},
	}

	reg := prometheus.NewRegistry()
	if err := reg.Register(&NotReady{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}); err != nil {
		t.Fatal(err)
	}

	want := []string{
		"policies{AllowancePolicy,NotReady} 3",
		"policies{AllowancePolicy,Ready} 1", "policies{AllowancePolicy,Shadow} 1", "policies{Enforcement,NotReady} 1", "policies{Enforcement,Ready} 1",
		"policies{UpgradeAllowance,NotReady} 1",
		"policies_not_ready{AllowancePolicy,KindUnknown} 2", "policies_not_ready{AllowancePolicy,Unobserved} 1",
		"policies_not_ready{Enforcement,Unobserved} 1", "policies_not_ready{UpgradeAllowance,Invalid} 1",
	}
	if diff := cmp.Diff(want, fixture.Counted(t, reg)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWhatCannotBeListedIsNotCounted as if there were none.
func TestWhatCannotBeListedIsNotCounted(t *testing.T) {
	n := &NotReady{Reader: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()}
	if reasons, states := n.count(t.Context()); len(reasons) != 0 || len(states) != 0 {
		t.Errorf("counted %v, %v", reasons, states)
	}
}
