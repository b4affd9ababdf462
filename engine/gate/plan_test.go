// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

func TestAResourceStartsWithinWhatItsCompositionAsksFor(t *testing.T) {
	cases := map[string]struct {
		reason  string
		desired []string
		late    bool
		want    []string
	}{
		"All":           {"It is made, and what is there already is not changed.", []string{"*"}, true, []string{"Observe", "LateInitialize", "Create"}},
		"OldRuntime":    {"Where the runtime does not know the closed set it observes.", []string{"*"}, false, []string{"Observe", "Create"}},
		"ObserveOnly":   {"What is only observed is never made.", []string{"Observe"}, true, []string{"Observe"}},
		"NoUpdate":      {"Nor updated where that is not asked for.", []string{"Observe", "Create", "LateInitialize"}, true, []string{"Observe", "LateInitialize", "Create"}},
		"NoLateInit":    {"Nor late-initialized.", []string{"Observe", "Create", "Update", "Delete"}, true, []string{"Observe", "Create"}},
		"Paused":        {"A paused one is paused.", []string{}, true, []string{}},
		"ObserveDelete": {"Delete is never among it.", []string{"Observe", "Delete"}, true, []string{"Observe"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := management.Initial(tc.desired, tc.late)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nInitial, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetsMeanTheSameInAnyOrder(t *testing.T) {
	if !management.Same([]string{"*"}, []string{"Delete", "Update", "Create", "LateInitialize", "Observe"}) || management.Same([]string{"Observe"}, nil) {
		t.Error("sets are compared by what they mean")
	}

	if management.Supported([]string{"Observe", "Update", "Delete"}) || management.Supported([]string{"Observe", "LateInitialize", "Delete"}) || management.Supported(nil) {
		t.Error("crossplane-runtime refuses Update with Delete, LateInitialize with Delete, and takes nothing for paused")
	}

	if diff := cmp.Diff([]string{"Observe"}, management.Closed([]string{"Observe", "Update"}, true)); diff != "" {
		t.Errorf("Closed without LateInitialize asked for, -want, +got:\n%s", diff)
	}

	if diff := cmp.Diff([]string{"Create", "Update", "Delete"}, management.Acting([]string{"*"})); diff != "" {
		t.Errorf("Acting of everything, -want, +got:\n%s", diff)
	}
}

// follow makes the planned write.
func follow(t *testing.T, u *unstructured.Unstructured, plan gate.Plan) *unstructured.Unstructured {
	t.Helper()

	u = u.DeepCopy()

	rec, err := allowance.FormatGate(plan.Record)
	if err != nil {
		t.Fatal(err)
	}

	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationGate] = rec
	annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(plan.Allowances)
	u.SetAnnotations(annotations)

	if err := unstructured.SetNestedStringSlice(u.Object, plan.Policies, "spec", "managementPolicies"); err != nil {
		t.Fatal(err)
	}

	u.SetGeneration(plan.Record.Generation)

	return u
}

// synced makes the provider report what it has seen.
func synced(t *testing.T, u *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	t.Helper()

	u = u.DeepCopy()
	conditions := []any{
		map[string]any{"type": "Synced", "status": "True", "observedGeneration": generation},
		map[string]any{"type": "Ready", "status": "True"},
	}

	if err := unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}

	return u
}

func TestAnOpenGateFollowsWhatIsAsked(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)

	cases := map[string]struct {
		reason   string
		values   map[string]string
		asked    string
		move     gate.Move
		set      []string
		left     int
		consumed int64
	}{
		"Widened": {
			reason: "An action that is allowed while the gate is open opens it wider.",
			values: map[string]string{
				"GATE": isOpen, "POLICIES": updateSet,
				"ALLOWANCES": `kausality.io/allowances: "[{relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}, {relation: External, mutations: [Create], generation: 9, initiator: eve, id: '9.0', source: {type: Policy}}]"`,
			},
			move: gate.OpenUp, set: []string{"Observe", "LateInitialize", "Create", "Update"}, left: 2, consumed: 3,
		},
		"Changed": {
			reason: "A hand edit of an open gate is put back.",
			values: map[string]string{"GATE": isOpen, "POLICIES": "['*']", "ALLOWANCES": update},
			move:   gate.OpenUp, set: []string{"Observe", "LateInitialize", "Update"}, left: 1, consumed: 3,
		},
		"NoLongerAsked": {
			reason: "A gate the Composition no longer asks for closes.",
			values: map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update},
			asked:  "[Observe]", move: gate.CloseUp, set: []string{"Observe"}, consumed: 8,
		},
		"OtherSystem": {
			reason: "Verbs of other systems are carried, and not gated.",
			values: map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": `kausality.io/allowances: "[{relation: External, mutations: [apply], generation: 12, initiator: hans, id: '12.0', source: {type: Policy}}]"`},
			move:   gate.CloseUp, set: []string{"Observe"}, left: 1, consumed: 8,
		},
		"OtherSystemClosed": {
			reason: "They open nothing.",
			values: map[string]string{"GATE": closed, "ALLOWANCES": `kausality.io/allowances: "[{relation: External, mutations: [apply], generation: 12, initiator: hans, id: '12.0', source: {type: Policy}}]"`},
			move:   gate.Stay, set: []string{"Observe", "LateInitialize"}, left: 1, consumed: 3,
		},
		"Child": {
			reason: "An allowance about a child is no business of the gate.",
			values: map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": `kausality.io/allowances: "[{kind: A, mutation: spec, generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}, {relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]"`},
			move:   gate.CloseUp, set: []string{"Observe"}, left: 1, consumed: 8,
		},
		"ObserveOnly": {
			reason: "What is only observed stays so, whatever is allowed.",
			values: map[string]string{"GATE": closed, "POLICIES": "[Observe]", "ALLOWANCES": update},
			asked:  "[Observe]", move: gate.Stay, set: []string{"Observe"}, left: 1, consumed: 3,
		},
		"Narrower": {
			reason: "Nothing is opened that the Composition does not ask for.",
			values: map[string]string{"GATE": closed, "POLICIES": "[Observe]", "ALLOWANCES": `kausality.io/allowances: "[{relation: External, mutations: [Update, Create, Delete], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]"`},
			asked:  "[Observe, Update]", move: gate.OpenUp, set: []string{"Observe", "Update"}, left: 1, consumed: 3,
		},
		"DefaultedOpen": {
			reason: "A field that is not set is fully open, and closed.",
			values: map[string]string{"GATE": closed, "POLICIES": "null"},
			move:   gate.CloseUp, set: []string{"Observe"}, consumed: 3,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := situation(t, tc.values)
			if tc.values["POLICIES"] == "null" {
				unstructured.RemoveNestedField(u.Object, "spec", "managementPolicies")
			}

			if tc.asked != "" {
				annotations := u.GetAnnotations()
				annotations[v1alpha1.AnnotationDesiredPolicies] = desired(tc.asked)
				u.SetAnnotations(annotations)
			}

			plan, err := gate.PlanFor(u, gate.Options{LateInitialize: true, Settle: time.Minute}, now)
			if err != nil || plan.Move != tc.move || len(plan.Allowances) != tc.left || plan.Record.Consumed != tc.consumed {
				t.Fatalf("%s\nPlanFor: %+v, %v", tc.reason, plan, err)
			}

			if diff := cmp.Diff(tc.set, plan.Policies); diff != "" {
				t.Errorf("%s\npolicies, -want, +got:\n%s", tc.reason, diff)
			}

			for _, a := range plan.Allowances {
				if !allowance.External(a) && a.Mutation != "spec" {
					t.Errorf("%s\nallowance about a child: %+v", tc.reason, a)
				}
			}
		})
	}
}

func TestAGateThatIsOpenForLongIsReported(t *testing.T) {
	u := situation(t, map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update, "SYNCED": "False"})
	opts := gate.Options{LateInitialize: true, MaxOpen: time.Hour}

	for minutes, want := range map[int]struct {
		overdue bool
		again   time.Duration
	}{10: {false, 50 * time.Minute}, 60: {true, 0}, 90: {true, 0}} {
		plan, err := gate.PlanFor(u, opts, time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC))
		if err != nil || plan.Overdue != want.overdue || plan.Again != want.again || plan.Move != gate.Stay {
			t.Errorf("after %d minutes: %+v, %v", minutes, plan, err)
		}
	}
}

func TestAnyMalformedAnnotationIsReportedAndOpensNothing(t *testing.T) {
	for key, value := range map[string]string{
		v1alpha1.AnnotationGate: "- a", v1alpha1.AnnotationAllowances: "{", v1alpha1.AnnotationDesiredPolicies: "{a: b}",
	} {
		u := situation(t, map[string]string{"GATE": closed})
		annotations := u.GetAnnotations()
		annotations[key] = value
		u.SetAnnotations(annotations)

		plan, err := gate.PlanFor(u, gate.Options{LateInitialize: true}, time.Now())
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: error %v", key, err)
		}

		if len(management.Acting(plan.Policies)) > 0 || plan.Move == gate.OpenUp {
			t.Errorf("%s: %+v", key, plan)
		}
	}
}

func TestAResourceIsDeletedOnlyWhereItsExternalOneIsMeantToGoOrToStay(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   map[string]any
		asked  string
		want   bool
	}{
		"Closed":      {"A closed gate would orphan it.", map[string]any{"managementPolicies": []any{"Observe", "LateInitialize"}}, "", false},
		"Open":        {"An open one deletes it.", map[string]any{"managementPolicies": []any{"Observe", "Delete"}}, "", true},
		"Everything":  {"So does everything.", map[string]any{"managementPolicies": []any{"*"}}, "", true},
		"Orphan":      {"Where that is asked for it stays.", map[string]any{"deletionPolicy": "Orphan"}, "", true},
		"NotAsked":    {"Or where Delete never was.", map[string]any{"managementPolicies": []any{"Observe"}}, "[Observe, Create]", true},
		"Asked":       {"Where it was it must open first.", map[string]any{"managementPolicies": []any{"Observe"}}, "['*']", false},
		"Malformed":   {"Where nobody can tell nothing goes.", map[string]any{"managementPolicies": []any{"Observe"}}, "{", false},
		"PausedSince": {"A paused one asks for nothing.", map[string]any{"managementPolicies": []any{}}, "[]", true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}
			if tc.asked != "" {
				u.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredPolicies: desired(tc.asked)})
			}

			if got := gate.MayDelete(u); got != tc.want {
				t.Errorf("%s\nMayDelete: %v", tc.reason, got)
			}
		})
	}
}

func TestAResourceIsPendingUntilItsGateIsClosedAndItsProviderHasCaughtUp(t *testing.T) {
	cases := map[string]struct {
		values map[string]string
		want   bool
	}{
		"Closed":    {map[string]string{"GATE": closed}, false},
		"NoRecord":  {map[string]string{}, true},
		"Open":      {map[string]string{"GATE": isOpen}, true},
		"Allowed":   {map[string]string{"GATE": closed, "ALLOWANCES": update}, true},
		"Behind":    {map[string]string{"GATE": closed, "OBSERVED": "7"}, true},
		"NoNumber":  {map[string]string{"GATE": closed, "OBSERVED": "0"}, false},
		"Malformed": {map[string]string{"GATE": closed, "ALLOWANCES": `kausality.io/allowances: "{"`}, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := gate.Pending(situation(t, tc.values)); got != tc.want {
				t.Errorf("Pending: %v", got)
			}
		})
	}
}
