// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
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
		&v1alpha1.AllowancePolicy{ObjectMeta: named("a"), Status: v1alpha1.AllowancePolicyStatus{Conditions: readyIf("False", "KindUnknown", 2)}},
		&v1alpha1.AllowancePolicy{ObjectMeta: named("b"), Status: v1alpha1.AllowancePolicyStatus{Conditions: readyIf("False", "KindUnknown", 2)}},
		&v1alpha1.AllowancePolicy{ObjectMeta: named("c"), Status: v1alpha1.AllowancePolicyStatus{Conditions: readyIf("True", "InForce", 1)}},
		&v1alpha1.UpgradeAllowance{ObjectMeta: named("w"), Status: v1alpha1.UpgradeAllowanceStatus{Conditions: readyIf("False", "Invalid", 2)}},
		&v1alpha1.Enforcement{ObjectMeta: named("e"), Status: v1alpha1.EnforcementStatus{Conditions: readyIf("True", "InForce", 2)}},
		&v1alpha1.Enforcement{ObjectMeta: named("new")},
	}

	reg := prometheus.NewRegistry()
	if err := reg.Register(&notReady{reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}); err != nil {
		t.Fatal(err)
	}

	want := []string{
		"policies_not_ready{AllowancePolicy,KindUnknown} 2", "policies_not_ready{AllowancePolicy,Unobserved} 1",
		"policies_not_ready{Enforcement,Unobserved} 1", "policies_not_ready{UpgradeAllowance,Invalid} 1",
	}
	if diff := cmp.Diff(want, counted(t, reg)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWhatCannotBeListedIsNotCounted as if there were none.
func TestWhatCannotBeListedIsNotCounted(t *testing.T) {
	n := &notReady{reader: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()}
	if got := n.count(t.Context()); len(got) != 0 {
		t.Errorf("counted %v", got)
	}
}

func TestExpressionsOfGatesThatFailAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()

	e := newExpressions()
	if err := reg.Register(e.failed); err != nil {
		t.Fatal(err)
	}

	e.count(nil, errDown, &policy.EvaluationError{Kind: policy.KindPolicy, Name: "p", Err: errDown})
	e.count(&policy.EvaluationError{Kind: policy.KindPolicy, Name: "p", Err: errDown})
	(*expressions)(nil).count(&policy.EvaluationError{Kind: policy.KindPolicy, Name: "p", Err: errDown})

	if diff := cmp.Diff([]string{"gate_expression_errors_total{AllowancePolicy,p} 2"}, counted(t, reg)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestASourceHasTheGenerationThatIsInForce and none where it is gone.
func TestASourceHasTheGenerationThatIsInForce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 3}},
		&v1alpha1.UpgradeAllowance{ObjectMeta: metav1.ObjectMeta{Name: "w", Generation: 5}},
	).Build()
	hop := []v1alpha1.Hop{{Kind: "Instance", Name: "db"}}

	got := sources(t.Context(), reader, []v1alpha1.Allowance{
		{Policy: "p", Initiator: "hans", Relation: v1alpha1.RelationExternal, Trace: hop},
		{Policy: "p", Initiator: "anna", Relation: v1alpha1.RelationExternal, Trace: hop},
		{Policy: "w", Initiator: "UpgradeAllowance/w", Relation: v1alpha1.RelationExternal, Trace: hop},
		{Policy: "gone", Initiator: "hans", Relation: v1alpha1.RelationExternal, Trace: hop},
		{Initiator: "hans"},
	})
	if diff := cmp.Diff([]string{"p@3", "w@5", "gone"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
