// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAGateIsNeverWiderThanAllowedAndAskedFor(t *testing.T) {
	acting := []string{management.ActionCreate, management.ActionUpdate, management.ActionDelete}
	desired := [][]string{
		{"*"},
		{"Observe"},
		{"Observe", "LateInitialize"},
		{"Observe", "Create", "Update", "LateInitialize"},
		{"Observe", "Create", "Update", "Delete"},
		{"Observe", "Update"},
		{"Observe", "Delete"},
		{"Observe", "Create", "Delete", "LateInitialize"},
	}

	for bits := range 1 << len(acting) {
		var asked []string

		for i, a := range acting {
			if bits&(1<<i) != 0 {
				asked = append(asked, a)
			}
		}

		for _, d := range desired {
			for _, late := range []bool{true, false} {
				set, serves := management.Open(asked, d, late)
				if !management.Supported(set) {
					t.Errorf("Open(%v, %v, %v) = %v, which no provider supports", asked, d, late, set)
				}

				if !slices.Equal(serves, management.Acting(set)) {
					t.Errorf("Open(%v, %v, %v) = %v serves %v", asked, d, late, set, serves)
				}

				for _, a := range set {
					in := func(list []string) bool { return strings.Contains(strings.Join(list, ",")+",*", a) }
					if !in(asked) && a != management.ActionObserve && a != management.ActionLateInitialize {
						t.Errorf("Open(%v, %v, %v) = %v is wider than asked", asked, d, late, set)
					}

					if d[0] != management.ActionAll && !in(d) {
						t.Errorf("Open(%v, %v, %v) = %v is wider than the Composition asks", asked, d, late, set)
					}
				}
			}
		}
	}
}

func TestSetsThatAreNotSupportedAreServedInTurn(t *testing.T) {
	cases := map[string]struct {
		asked, desired, set, serves []string
	}{
		"Update":       {[]string{"Update"}, []string{"*"}, []string{"Observe", "LateInitialize", "Update"}, []string{"Update"}},
		"Delete":       {[]string{"Delete"}, []string{"*"}, []string{"Observe", "Delete"}, []string{"Delete"}},
		"UpdateDelete": {[]string{"Update", "Delete"}, []string{"*"}, []string{"Observe", "LateInitialize", "Update"}, []string{"Update"}},
		"Recreate":     {[]string{"Delete", "Create"}, []string{"*"}, []string{"Observe", "LateInitialize", "Create", "Delete"}, []string{"Create", "Delete"}},
		"Nothing":      {nil, []string{"*"}, []string{"Observe", "LateInitialize"}, nil},
		"NotAskedFor":  {[]string{"Delete"}, []string{"Observe", "Update"}, []string{"Observe"}, nil},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, serves := management.Open(tc.asked, tc.desired, true)
			if diff := cmp.Diff([][]string{tc.set, tc.serves}, [][]string{set, serves}); diff != "" {
				t.Errorf("Open(%v, %v): -want, +got:\n%s", tc.asked, tc.desired, diff)
			}
		})
	}
}

const base = `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata:
  name: db
  generation: 8
  annotations:
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kausality.io/trace: |
      - {field: spec.forProvider.size, generation: 8, initiator: hans}
    GATE
    ALLOWANCES
spec:
  managementPolicies: POLICIES
  forProvider: {size: large}
status:
  atProvider: ATPROVIDER
  conditions:
  - {type: Synced, status: "SYNCED", observedGeneration: OBSERVED, lastTransitionTime: "2026-01-01T00:00:00Z", message: oops}
  - {type: Ready, status: "READY"}
  ASYNC
`

const (
	update  = `kausality.io/allowances: "[{relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]"`
	isOpen  = `kausality.io/gate: "{v: 1, state: Open, actions: [Update], generation: 9, since: 2026-01-01T00:00:00Z, consumed: 3, allowances: [{relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]}"`
	closed  = `kausality.io/gate: "{v: 1, state: Closed, generation: 7, since: 2026-01-01T00:00:00Z, consumed: 3}"`
	initial = `kausality.io/gate: "{v: 1, state: Open, creating: true, actions: [Create, Update], generation: 1, since: 2026-01-01T00:00:00Z}"`

	closedSet = "[Observe, LateInitialize]"
	updateSet = "[Observe, LateInitialize, Update]"
)

// situation fills in the fixture, and what it does not say is harmless.
func situation(t *testing.T, values map[string]string) *unstructured.Unstructured {
	t.Helper()

	text := base

	for key, fallback := range map[string]string{
		"GATE": "a: b", "ALLOWANCES": "c: d", "POLICIES": closedSet, "ATPROVIDER": "{size: large}",
		"SYNCED": "True", "OBSERVED": "9", "READY": "True", "ASYNC": "",
	} {
		if v, ok := values[key]; ok {
			fallback = v
		}

		text = strings.Replace(text, key, fallback, 1)
	}

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	u.Object, _ = fixture.Decoded(u.Object).(map[string]any)
	if strings.Contains(values["GATE"], "Open, actions") {
		_ = unstructured.SetNestedField(u.Object, int64(9), "metadata", "generation")
	}

	return u
}

func TestTheGateMoves(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)

	cases := map[string]struct {
		reason string
		values map[string]string
		now    time.Time
		move   gate.Move
		set    []string
		record v1alpha1.GateRecord
		left   int
		why    string
		again  time.Duration
	}{
		"Opens": {
			reason: "An unconsumed allowance opens for exactly its actions, and the record has the generation the opening makes.",
			values: map[string]string{"GATE": closed, "ALLOWANCES": update},
			move:   gate.OpenUp, set: []string{"Observe", "LateInitialize", "Update"}, left: 1,
			record: v1alpha1.GateRecord{V: 1, State: v1alpha1.GateOpen, Actions: []string{"Update"}, Generation: 9, Consumed: 3},
		},
		"StaysClosed": {
			reason: "Without an allowance nothing moves.",
			values: map[string]string{"GATE": closed},
			move:   gate.Stay, why: "closed",
		},
		"ConsumedDoesNotReopen": {
			reason: "A stale stamp of an allowance that has landed opens nothing.",
			values: map[string]string{"GATE": strings.Replace(closed, "consumed: 3", "consumed: 8", 1), "ALLOWANCES": update},
			move:   gate.Stay, left: 1, why: "closed",
		},
		"HandEditIsPutBack": {
			reason: "Where the guard is missing, an open set without a record of it is closed again.",
			values: map[string]string{"GATE": closed, "POLICIES": "['*']"},
			move:   gate.CloseUp, set: []string{"Observe"},
			record: v1alpha1.GateRecord{V: 1, State: v1alpha1.GateClosed, Generation: 9, Consumed: 3},
		},
		"Lands": {
			reason: "Synced at the opening's generation, and the external system shows the new value: closed, the allowance goes.",
			values: map[string]string{"GATE": isOpen, "ALLOWANCES": update, "POLICIES": updateSet},
			move:   gate.CloseUp, set: []string{"Observe"},
			record: v1alpha1.GateRecord{V: 1, State: v1alpha1.GateClosed, Generation: 10, Consumed: 8},
		},
		"SyncedBeforeOpening": {
			reason: "The allowance's own generation is synced under a closed gate too, with nothing applied.",
			values: map[string]string{"GATE": isOpen, "ALLOWANCES": update, "POLICIES": updateSet, "OBSERVED": "8"},
			move:   gate.Stay, left: 1, why: "sync generation 9 (it synced 8)",
		},
		"Fails": {
			reason: "While the provider fails, it keeps trying.",
			values: map[string]string{"GATE": isOpen, "ALLOWANCES": update, "POLICIES": updateSet, "SYNCED": "False"},
			move:   gate.Stay, left: 1, why: "Synced=False: oops",
		},
		"NotThereYet": {
			reason: "A provider that reports Synced at once has not finished until the external system shows the value.",
			values: map[string]string{"GATE": isOpen, "ALLOWANCES": update, "POLICIES": updateSet, "ATPROVIDER": "{size: small}"},
			move:   gate.Stay, left: 1, why: "new value of spec.forProvider.size",
		},
		"Async": {
			reason: "An operation in the background is still running.",
			values: map[string]string{
				"GATE": isOpen, "ALLOWANCES": update, "POLICIES": updateSet,
				"ASYNC": `- {type: AsyncOperation, status: "False", reason: Ongoing}`,
			},
			move: gate.Stay, left: 1, why: "asynchronous operation",
		},
		"AsyncFailed": {
			reason: "The last operation in the background failed and is tried again.",
			values: map[string]string{
				"GATE": isOpen, "ALLOWANCES": update, "POLICIES": updateSet,
				"ASYNC": `- {type: LastAsyncOperation, status: "False", message: quota}`,
			},
			move: gate.Stay, left: 1, why: "failed: quota",
		},
		"Settles": {
			reason: "Where the external system does not show the field, it must look applied for a while.",
			values: map[string]string{"GATE": isOpen, "ALLOWANCES": update, "POLICIES": updateSet, "ATPROVIDER": "{}"},
			now:    time.Date(2026, 1, 1, 0, 0, 20, 0, time.UTC),
			move:   gate.Stay, left: 1, why: "settle", again: 40 * time.Second,
		},
		"Settled": {
			reason: "After that while it has landed.",
			values: map[string]string{"GATE": isOpen, "ALLOWANCES": update, "POLICIES": updateSet, "ATPROVIDER": "{}"},
			move:   gate.CloseUp, set: []string{"Observe"},
			record: v1alpha1.GateRecord{V: 1, State: v1alpha1.GateClosed, Generation: 10, Consumed: 8},
		},
		"TakenOver": {
			reason: "A new resource keeps what the function stamped until it is ready.",
			values: map[string]string{"POLICIES": "[Observe, LateInitialize, Create, Update]", "READY": "False"},
			move:   gate.TakeOver, set: []string{"Observe", "LateInitialize", "Create", "Update"},
			record: v1alpha1.GateRecord{V: 1, State: v1alpha1.GateOpen, Actions: []string{"Create", "Update"}, Generation: 8, Creating: true},
		},
		"TakenOverReady": {
			reason: "A resource from before Kausality that is ready is closed at once.",
			values: map[string]string{"POLICIES": "['*']"},
			move:   gate.CloseUp, set: []string{"Observe"},
			record: v1alpha1.GateRecord{V: 1, State: v1alpha1.GateClosed, Generation: 9, Unacknowledged: true},
		},
		"InitialUntilReady": {
			reason: "The first gate stays open until the resource is ready once.",
			values: map[string]string{"GATE": initial, "POLICIES": "[Observe, LateInitialize, Create, Update]", "READY": "False"},
			move:   gate.Stay, why: "ready for the first time",
		},
		"InitialReady": {
			reason: "And closes then.",
			values: map[string]string{"GATE": initial, "POLICIES": "[Observe, LateInitialize, Create, Update]"},
			move:   gate.CloseUp, set: []string{"Observe"},
			record: v1alpha1.GateRecord{V: 1, State: v1alpha1.GateClosed, Generation: 9},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := tc.now
			if at.IsZero() {
				at = now
			}

			opts := gate.Options{LateInitialize: true, Settle: time.Minute}

			plan, err := gate.PlanFor(situation(t, tc.values), opts, at)
			if err != nil || plan.Move != tc.move || len(plan.Allowances) != tc.left || plan.Again != tc.again {
				t.Fatalf("%s\nPlanFor: %+v, %v", tc.reason, plan, err)
			}

			if !strings.Contains(plan.Why, tc.why) {
				t.Errorf("%s\nWhy: %q does not say %q", tc.reason, plan.Why, tc.why)
			}

			if tc.move == gate.Stay {
				return
			}

			got := plan.Record
			got.Since, got.Allowances, got.Identity, got.Compared, got.Differs = tc.record.Since, nil, nil, "", nil

			if diff := cmp.Diff(tc.record, got); diff != "" {
				t.Errorf("%s\nrecord, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.set, plan.Policies); diff != "" {
				t.Errorf("%s\npolicies, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAPausedResourceIsLeftAlone(t *testing.T) {
	u := situation(t, map[string]string{"GATE": closed, "ALLOWANCES": update, "POLICIES": "[]"})
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredPolicies: management.FormatPolicies(nil)})

	plan, err := gate.PlanFor(u, gate.Options{LateInitialize: true}, time.Now())
	if err != nil || plan.Move != gate.Stay {
		t.Errorf("PlanFor: %+v, %v", plan, err)
	}
}

func TestAMalformedAnnotationOpensNothing(t *testing.T) {
	u := situation(t, map[string]string{"GATE": closed, "ALLOWANCES": `kausality.io/allowances: "- ["`})

	plan, err := gate.PlanFor(u, gate.Options{LateInitialize: true}, time.Now())
	if err == nil || !strings.Contains(err.Error(), `Object "db": cannot parse annotation "kausality.io/allowances"`) {
		t.Errorf("PlanFor: error %v", err)
	}

	if plan.Move != gate.Stay {
		t.Errorf("PlanFor: %+v", plan)
	}
}
