// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestABindingSaysWhyItIsNotInForce(t *testing.T) {
	const (
		none     = `{}`
		silent   = `{metadata: {name: p, generation: 2}, spec: {}}`
		bindable = `{metadata: {name: p, generation: 2}, spec: {bindingMode: Optional, paramKind: {apiVersion: a/v1, kind: A}, paramRef: {name: a}}}`
		open     = `{metadata: {name: p, generation: 2}, spec: {bindingMode: Required, paramKind: {apiVersion: a/v1, kind: A}, paramRef: {name: a, overridable: true}}}`

		binding = `{metadata: {name: b, namespace: shop}, spec: {policy: p, subjects: [{kind: Group, name: g}]}}`
		params  = `{metadata: {name: b, namespace: shop}, spec: {policy: p, subjects: [{kind: Group, name: g}], paramRef: {name: own}}}`
		broken  = `{metadata: {name: b, namespace: shop}, spec: {policy: p, subjects: [{kind: Group, name: g}], matchConditions: [{name: c, expression: "1 +"}]}}`
	)

	cases := map[string]struct {
		title, binding, policy string

		ready, reason string
		observed      int64

		status        metav1.ConditionStatus
		want, message string
	}{
		"Unknown":   {"There is no such policy.", binding, none, "", "", 0, "False", v1alpha1.ReasonPolicyUnknown, `there is no AllowancePolicy "p"`},
		"Broken":    {"An expression does not compile.", broken, bindable, "True", "InForce", 2, "False", v1alpha1.ReasonInvalid, "spec.matchConditions[0]"},
		"Silent":    {"The policy has no bindings.", binding, silent, "True", "InForce", 2, "False", v1alpha1.ReasonNotBindable, `AllowancePolicy "p" says nothing of bindings`},
		"Fixed":     {"The parameters are the policy's.", params, bindable, "True", "InForce", 2, "False", v1alpha1.ReasonNotOverridable, `that of AllowancePolicy "p" is not overridable`},
		"Overrides": {"They are the binding's.", params, open, "True", "InForce", 2, "True", v1alpha1.ReasonInForce, "the binding is in force"},
		"New":       {"Nothing is known of the policy.", binding, bindable, "", "", 0, "False", v1alpha1.ReasonPolicyNotReady, "is not reported on yet"},
		"Older":     {"What is known is of another generation.", binding, bindable, "True", "InForce", 1, "False", v1alpha1.ReasonPolicyNotReady, "is not reported on yet"},
		"Without":   {"The policy is not in force.", binding, bindable, "False", "RightsMissing", 2, "False", v1alpha1.ReasonPolicyNotReady, "is not in force (RightsMissing)"},
		"Shadow":    {"It is in Shadow mode.", binding, bindable, "True", "Shadow", 2, "True", v1alpha1.ReasonShadow, "is in Shadow mode, and so is its binding"},
		"In force":  {"All is well.", binding, bindable, "True", "InForce", 2, "True", v1alpha1.ReasonInForce, "the binding is in force"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := fixture.Documents[v1alpha1.AllowancePolicy](t, tc.policy)[0]
			if tc.ready != "" {
				meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
					Type: v1alpha1.ConditionReady, Status: metav1.ConditionStatus(tc.ready), Reason: tc.reason, ObservedGeneration: tc.observed,
				})
			}

			got := bindingReadiness(&fixture.Documents[v1alpha1.AllowanceBinding](t, tc.binding)[0], &p)
			if got.Status != tc.status || got.Reason != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%s\n%+v, want %s, %s: %s", tc.title, got, tc.status, tc.want, tc.message)
			}
		})
	}
}

// TestABindingSaysThatItWasMadeUnguarded is the one way in which anybody hears of that.
func TestABindingSaysThatItWasMadeUnguarded(t *testing.T) {
	guard := time.Date(2026, time.January, 6, 12, 0, 0, 0, time.UTC)

	for name, tc := range map[string]struct {
		reason string
		made   time.Time
		want   bool
	}{
		"Before": {"Nobody was asked.", guard.Add(-time.Minute), true},
		"With":   {"The API server may not have heard of the guard.", guard.Add(guardTakes), true},
		"After":  {"Who made it was asked.", guard.Add(guardTakes + time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.AllowanceBinding{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(tc.made)}}

			got := unguarded(b, guard)
			if said := len(got) == 1 && strings.Contains(got[0].Warning, "before kausality-bind was in force"); said != tc.want {
				t.Errorf("%s\n%v", tc.reason, got)
			}
		})
	}
}

// TestTheStatusOfABindingWaitsForItsGuard because only then the status says whether the binding is older.
func TestTheStatusOfABindingWaitsForItsGuard(t *testing.T) {
	guard := time.Date(2026, time.January, 6, 12, 0, 0, 0, time.UTC)
	binding := func(name string, made time.Time) *v1alpha1.AllowanceBinding {
		b := fixture.Documents[v1alpha1.AllowanceBinding](t, `{metadata: {name: `+name+`, namespace: shop}, spec: {policy: p, subjects: [{kind: Group, name: g}]}}`)[0]
		b.SetCreationTimestamp(metav1.NewTime(made))

		return &b
	}

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.AllowanceBinding{}).
		WithObjects(binding("before", guard.Add(-time.Minute)), binding("after", guard.Add(time.Minute))).Build()

	known := false
	r := Bindings{
		Reporter:     &Reporter{Client: c, Schemas: &Schemas{Discovery: &fakeOpenAPI{}}},
		Initiates:    func(string) bool { return true },
		GuardedSince: func() (time.Time, bool) { return guard, known },
	}

	for name, want := range map[string]int{"before": 1, "after": 0} {
		key := client.ObjectKey{Namespace: "shop", Name: name}
		b := &v1alpha1.AllowanceBinding{}

		known = false
		if got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || got.RequeueAfter != guardSoon {
			t.Errorf("%s: %v, %v, want another try in %s", name, got, err, guardSoon)
		}

		if err := c.Get(t.Context(), key, b); err != nil || len(b.Status.Conditions) > 0 {
			t.Errorf("%s: reported before it is known: %v, %v", name, b.Status, err)
		}

		known = true
		if got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || !got.IsZero() {
			t.Errorf("%s: %v, %v", name, got, err)
		}

		if err := c.Get(t.Context(), key, b); err != nil || len(b.Status.Conditions) == 0 || len(b.Status.TypeChecking) != want {
			t.Errorf("%s: %+v, %v, want %d warnings", name, b.Status, err, want)
		}
	}
}
