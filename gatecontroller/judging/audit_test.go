// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judging

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestExpressionsOfGatesThatFailAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()

	e := NewExpressions()
	if err := reg.Register(e.Failed); err != nil {
		t.Fatal(err)
	}

	e.Count(nil, fixture.ErrBroken, &expression.EvaluationError{Kind: v1alpha1.KindPolicy, Name: "p", Err: fixture.ErrBroken})
	e.Count(&expression.EvaluationError{Kind: v1alpha1.KindPolicy, Name: "p", Err: fixture.ErrBroken})
	(*Expressions)(nil).Count(&expression.EvaluationError{Kind: v1alpha1.KindPolicy, Name: "p", Err: fixture.ErrBroken})

	if diff := cmp.Diff([]string{"gate_expression_errors_total{AllowancePolicy,p} 2"}, fixture.Counted(t, reg)); diff != "" {
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
		{Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceWindow, Name: "w"}, Initiator: "UpgradeAllowance/w", Relation: v1alpha1.RelationExternal, Trace: hop},
		{Policy: "gone", Initiator: "hans", Relation: v1alpha1.RelationExternal, Trace: hop},
		{Initiator: "hans"},
	})
	if diff := cmp.Diff([]string{"p@3", "w@5", "gone"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestTheLogSaysWhoStartedAChainAndByWhichPolicies(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	reader := fake.NewClientBuilder().WithScheme(scheme).Build()
	hop := []v1alpha1.Hop{{Kind: "Claim", Name: "db", Attestations: map[string]string{"metadata.annotations[jira]": "INFRA-7"}}}

	got := Given(t.Context(), reader, []v1alpha1.Allowance{{Policy: "p", Initiator: "hans", Relation: v1alpha1.RelationExternal, Trace: hop}})
	want := []any{
		"initiators",
		[]string{"hans"},
		"grantedBy",
		[]string{"p"},
		"attestations",
		map[string]string{"metadata.annotations[jira]": "INFRA-7"},
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Given, -want, +got:\n%s", diff)
	}

	judged := Judged(&decision.Decision{Attestations: map[string]string{"a": "b"}})
	if diff := cmp.Diff([]any{"decidedBy", []string{}, "enforcements", []string{}, "attestations", map[string]string{"a": "b"}}, judged); diff != "" {
		t.Errorf("Judged, -want, +got:\n%s", diff)
	}
}
