// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
)

// ofProvider is a window for what a provider does to what carries a label.
func ofProvider() *v1alpha1.UpgradeAllowance {
	now := time.Now()

	return &v1alpha1.UpgradeAllowance{
		ObjectMeta: metav1.ObjectMeta{Name: "provider-v2", UID: "w", Generation: 1},
		Spec: v1alpha1.UpgradeAllowanceSpec{
			ServiceAccount: "system:serviceaccount:crossplane-system:provider",
			ValidFrom:      metav1.NewTime(now.Add(-time.Hour)), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
			Allow:    []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}}},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		},
	}
}

// closedDatabase is a managed resource whose gate is closed, without allowances.
func closedDatabase(team string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Database",
		"metadata": map[string]any{
			"name": "db-" + team, "generation": int64(7), "labels": map[string]any{"team": team},
			"annotations": map[string]any{v1alpha1.AnnotationGate: "{v: 1, state: Closed, generation: 7, since: \"2026-01-01T00:00:00Z\", consumed: 5}"},
		},
		"spec": map[string]any{"forProvider": map[string]any{"size": "large"}, "managementPolicies": []any{"Observe", "LateInitialize"}},
	}}
}

func TestAWindowOpensByItselfTheGatesOfWhatItSelectsAndIsCounted(t *testing.T) {
	t.Parallel()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ofProvider(), closedDatabase("a"), closedDatabase("b")).Build()

	book, err := NewLedger(prometheus.NewRegistry(), time.Now)
	if err != nil {
		t.Fatal(err)
	}

	var used []v1alpha1.GateWindow

	g := &Mover{
		Client: c, Events: events.NewFakeRecorder(10), Ungated: NewUngated(watch.NewPrompt()), Opts: gate.Options{LateInitialize: true},
		Now: time.Now, Policies: &PolicyGates{Reader: c, Compiled: policy.NewCache()}, Ledger: book, Openers: Openers{Reader: c},
		Used: func(w v1alpha1.GateWindow) { used = append(used, w) },
	}

	// Twice: what is open is not opened again.
	for range 2 {
		for _, team := range []string{"a", "b"} {
			u := live(t, c, team)
			if _, err := g.Reconcile(t.Context(), u, true); err != nil {
				t.Fatal(err)
			}
		}
	}

	window := v1alpha1.GateWindow{Name: "provider-v2", UID: "w"}
	if diff := cmp.Diff([]v1alpha1.GateWindow{window}, used); diff != "" {
		t.Errorf("uses: -want, +got:\n%s", diff)
	}

	a := live(t, c, "a")
	if got := resource.Strings(a.Object, "spec", "managementPolicies"); !management.Same(got, []string{"Observe", "LateInitialize", "Update"}) {
		t.Errorf("the selected one has %v", got)
	}

	if list, err := allowance.Parse(a); err != nil || len(list) != 1 || list[0].Initiator != "UpgradeAllowance/provider-v2" {
		t.Errorf("the selected one carries %+v (%v)", list, err)
	}

	if rec, err := allowance.ParseGate(a); err != nil || !cmp.Equal(rec.Windows, []v1alpha1.GateWindow{window}) {
		t.Errorf("the record of the selected one is %+v (%v)", rec, err)
	}

	if got := resource.Strings(live(t, c, "b").Object, "spec", "managementPolicies"); len(got) != 2 {
		t.Errorf("the other one has %v", got)
	}
}

// live reads a team's database.
func live(t *testing.T, c client.Reader, team string) *unstructured.Unstructured {
	t.Helper()

	u := closedDatabase(team)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		t.Fatal(err)
	}

	return u
}
