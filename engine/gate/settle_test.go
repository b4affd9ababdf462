// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// opening is when the fixtures' gate opened.
var opening = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// open is a resource whose gate is open for Update, since opening.
func open(t *testing.T, values map[string]string) *unstructured.Unstructured {
	t.Helper()

	all := map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update}
	maps.Copy(all, values)

	return situation(t, all)
}

// conditions sets status.conditions from YAML.
func conditions(t *testing.T, u *unstructured.Unstructured, text string) *unstructured.Unstructured {
	t.Helper()

	var list []any
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}

	list, _ = fixture.Decoded(list).([]any)
	if err := unstructured.SetNestedSlice(u.Object, list, "status", "conditions"); err != nil {
		t.Fatal(err)
	}

	return u
}

func planFor(t *testing.T, u *unstructured.Unstructured, opts gate.Options, now time.Time) gate.Plan {
	t.Helper()

	plan, err := gate.PlanFor(u, opts, now)
	if err != nil {
		t.Fatal(err)
	}

	return plan
}

func TestAnAllowanceThatArrivesUnderAnOpenGateCountsFromThen(t *testing.T) {
	opts := gate.Options{LateInitialize: true, Settle: time.Minute}
	now := opening.Add(10 * time.Minute)
	two := `kausality.io/allowances: "[{relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}, {relation: External, mutations: [Update], generation: 10, initiator: eve, policy: other, id: '10.0', source: {type: Policy, name: other}}]"`
	u := open(t, map[string]string{"ATPROVIDER": "{}", "OBSERVED": "10", "ALLOWANCES": two})
	u.SetGeneration(10)

	// 1. It is recorded, though the set stays the same.
	plan := planFor(t, u, opts, now)
	if diff := cmp.Diff([]string{"Observe", "LateInitialize", "Update"}, plan.Policies); plan.Move != gate.OpenUp || diff != "" {
		t.Fatalf("PlanFor: %+v", plan)
	}

	if plan.Record.Generation != 10 || !plan.Record.Since.Time.Equal(now) || len(plan.Record.Allowances) != 2 || plan.Record.Consumed != 3 {
		t.Fatalf("record: %+v", plan.Record)
	}

	// 2. Settling counts from the record.
	u = follow(t, u, plan)
	if plan = planFor(t, u, opts, now.Add(20*time.Second)); plan.Move != gate.Stay || plan.Again != 40*time.Second {
		t.Fatalf("settling: %+v", plan)
	}

	// 3. And then both have landed.
	if plan = planFor(t, u, opts, now.Add(time.Minute)); plan.Move != gate.CloseUp || plan.Record.Consumed != 10 || len(plan.Allowances) != 0 {
		t.Errorf("settled: %+v", plan)
	}
}

func TestAnAllowanceThatArrivesUnderAnOpenGateCanBeThereAlready(t *testing.T) {
	u := open(t, map[string]string{"OBSERVED": "10", "ALLOWANCES": `kausality.io/allowances: "[{relation: External, mutations: [Update], generation: 10, initiator: hans, id: '10.0', source: {type: Policy}}]"`})
	u.SetGeneration(10)

	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationTrace] = "[{field: spec.forProvider.size, generation: 10, initiator: hans}]"
	u.SetAnnotations(annotations)

	plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(time.Minute))
	if plan.Move != gate.CloseUp || plan.Record.Consumed != 10 {
		t.Errorf("PlanFor: %+v", plan)
	}
}

func TestWhatTheSpecNoLongerHasIsNotCompared(t *testing.T) {
	traced := func(text string) map[string]string {
		return map[string]string{v1alpha1.AnnotationTrace: "[{generation: 8, initiator: hans, field: '" + text + "'}]"}
	}

	cases := map[string]struct {
		reason     string
		field      string
		spec, show any
		why        string
		closed     bool
	}{
		"Removed":    {"A field that was removed and is shown still says nothing.", "spec.forProvider.tier", map[string]any{}, map[string]any{"tier": "gold"}, "settle", false},
		"Null":       {"Nor does one that is null.", "spec.forProvider.tier", map[string]any{"tier": nil}, map[string]any{"tier": "gold"}, "settle", false},
		"Below":      {"Nor does a part of a map that was removed.", "spec.forProvider.tags", map[string]any{"tags": map[string]any{"a": "1"}}, map[string]any{"tags": map[string]any{"b": "2"}}, "settle", false},
		"More":       {"A provider may show more.", "spec.forProvider.tags", map[string]any{"tags": map[string]any{"a": "1"}}, map[string]any{"tags": map[string]any{"a": "1", "b": "2"}}, "applied", true},
		"Differs":    {"But not something else.", "spec.forProvider.tags", map[string]any{"tags": map[string]any{"a": "1"}}, map[string]any{"tags": map[string]any{"a": "2"}}, "spec.forProvider.tags", false},
		"Lists":      {"A list is compared as a whole.", "spec.forProvider.l", map[string]any{"l": []any{"a"}}, map[string]any{"l": []any{"a", "b"}}, "spec.forProvider.l", false},
		"Other":      {"A field of another part has no counterpart.", "spec.writeConnectionSecretToRef.name", map[string]any{}, map[string]any{}, "settle", false},
		"NotAPath":   {"Nor has what is no field.", "spec.forProvider[", map[string]any{}, map[string]any{}, "settle", false},
		"Everything": {"A change of everything is a map too.", "spec.forProvider", map[string]any{"a": "1"}, map[string]any{"a": "2"}, "settle", false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := open(t, nil)
			annotations := u.GetAnnotations()
			annotations[v1alpha1.AnnotationTrace] = traced(tc.field)[v1alpha1.AnnotationTrace]
			u.SetAnnotations(annotations)

			_ = unstructured.SetNestedField(u.Object, tc.spec, "spec", "forProvider")
			_ = unstructured.SetNestedField(u.Object, tc.show, "status", "atProvider")

			opts := gate.Options{LateInitialize: true, Settle: time.Minute}

			plan := planFor(t, u, opts, opening.Add(30*time.Second))
			if (plan.Move == gate.CloseUp) != tc.closed || !strings.Contains(plan.Why, tc.why) {
				t.Errorf("%s\nPlanFor: %+v", tc.reason, plan)
			}

			if tc.why != "settle" {
				return
			}

			if plan = planFor(t, u, opts, opening.Add(time.Minute)); plan.Move != gate.CloseUp {
				t.Errorf("%s\nsettled: %+v", tc.reason, plan)
			}
		})
	}
}

func TestSettlingStartsAgainWhenAConditionChanges(t *testing.T) {
	const synced = `- {type: Synced, status: "True", observedGeneration: 9, lastTransitionTime: "2026-01-01T00:00:00Z"}`

	cases := map[string]struct {
		reason     string
		conditions string
		at         time.Duration
		again      time.Duration
	}{
		"Synced":     {"Failing and recovering is a break.", `- {type: Synced, status: "True", observedGeneration: 9, lastTransitionTime: "2026-01-01T00:02:00Z"}`, 150 * time.Second, 30 * time.Second},
		"LastAsync":  {"So is the end of an operation.", synced + "\n" + `- {type: LastAsyncOperation, status: "True", lastTransitionTime: "2026-01-01T00:02:00Z"}`, 150 * time.Second, 30 * time.Second},
		"Async":      {"However it is reported.", synced + "\n" + `- {type: AsyncOperation, status: "True", reason: Finished, lastTransitionTime: "2026-01-01T00:02:00Z"}`, 150 * time.Second, 30 * time.Second},
		"Latest":     {"The latest counts.", synced + "\n" + `- {type: AsyncOperation, status: "True", lastTransitionTime: "2026-01-01T00:02:20Z"}` + "\n" + `- {type: LastAsyncOperation, status: "True", lastTransitionTime: "2026-01-01T00:02:00Z"}`, 150 * time.Second, 50 * time.Second},
		"Future":     {"A provider whose clock is ahead is waited for.", synced + "\n" + `- {type: LastAsyncOperation, status: "True", lastTransitionTime: "2026-01-01T00:03:00Z"}`, 150 * time.Second, 90 * time.Second},
		"Unreadable": {"A time that does not parse is taken for one before the opening.", `- {type: Synced, status: "True", observedGeneration: 9, lastTransitionTime: yesterday}`, 20 * time.Second, 40 * time.Second},
		"None":       {"So is none.", `- {type: Synced, status: "True", observedGeneration: 9}`, 20 * time.Second, 40 * time.Second},
		"Before":     {"What was before the opening does not shorten it.", `- {type: Synced, status: "True", observedGeneration: 9, lastTransitionTime: "2025-01-01T00:00:00Z"}`, 20 * time.Second, 40 * time.Second},
		"Others":     {"Other conditions do not matter.", synced + "\n" + `- {type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:02:00Z"}`, 20 * time.Second, 40 * time.Second},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := conditions(t, open(t, map[string]string{"ATPROVIDER": "{}"}), tc.conditions)
			opts := gate.Options{LateInitialize: true, Settle: time.Minute}

			plan := planFor(t, u, opts, opening.Add(tc.at))
			if plan.Move != gate.Stay || plan.Again != tc.again || !strings.Contains(plan.Why, "settle") {
				t.Errorf("%s\nPlanFor: %+v", tc.reason, plan)
			}

			if plan = planFor(t, u, opts, opening.Add(tc.at+tc.again)); plan.Move != gate.CloseUp {
				t.Errorf("%s\nsettled: %+v", tc.reason, plan)
			}
		})
	}
}

func TestSyncedWithoutAGenerationProvesNothingBeforeItHasSettled(t *testing.T) {
	cases := map[string]struct {
		reason     string
		transition string
		shown      string
		at         time.Duration
		closed     bool
	}{
		"Before":      {"From before the opening, with nothing shown, it has to last.", "2025-12-31T00:00:00Z", "{}", 59 * time.Second, false},
		"Settled":     {"When it has lasted it is believed.", "2025-12-31T00:00:00Z", "{}", time.Minute, true},
		"Shown":       {"It has to last even where the status shows a value, for that may have been so before.", "2025-12-31T00:00:00Z", "{size: large}", 59 * time.Second, false},
		"ShownLasted": {"And is believed then.", "2025-12-31T00:00:00Z", "{size: large}", time.Minute, true},
		"After":       {"Even from after the opening, for upjet's callback sets it before it shows what an operation did.", "2026-01-01T00:00:30Z", "{size: large}", 59 * time.Second, false},
		"AfterNot":    {"With nothing shown it has to last from then.", "2026-01-01T00:00:30Z", "{}", time.Minute, false},
		"Future":      {"A time to come is no proof.", "2026-01-01T00:02:00Z", "{size: large}", 59 * time.Second, false},
		"Unreadable":  {"Nor is one that does not parse.", "yesterday", "{size: large}", 59 * time.Second, false},
		"Differs":     {"Another value shown is proof of the contrary.", "2026-01-01T00:00:30Z", "{size: small}", time.Hour, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := conditions(t, open(t, map[string]string{"ATPROVIDER": tc.shown}), `- {type: Synced, status: "True", lastTransitionTime: "`+tc.transition+`"}`)

			plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(tc.at))
			if (plan.Move == gate.CloseUp) != tc.closed {
				t.Errorf("%s\nPlanFor: %+v", tc.reason, plan)
			}
		})
	}
}

func TestANewResourceThatIsReadyMustShowWhatWasChangedSince(t *testing.T) {
	gateOf := `kausality.io/gate: "{v: 1, state: Open, creating: true, actions: [Create, Update], generation: 8, since: 2026-01-01T00:00:00Z, allowances: [{relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]}"`
	values := map[string]string{"GATE": gateOf, "POLICIES": "[Observe, LateInitialize, Create, Update]", "ALLOWANCES": update, "ATPROVIDER": "{size: small}"}
	opts := gate.Options{LateInitialize: true, Settle: time.Minute}

	if plan := planFor(t, situation(t, values), opts, opening.Add(time.Hour)); plan.Move != gate.Stay || !strings.Contains(plan.Why, "spec.forProvider.size") {
		t.Errorf("small: %+v", plan)
	}

	values["ATPROVIDER"] = "{}"
	if plan := planFor(t, situation(t, values), opts, opening.Add(30*time.Second)); plan.Move != gate.Stay || !strings.Contains(plan.Why, "settle") {
		t.Errorf("not shown: %+v", plan)
	}

	values["ATPROVIDER"] = "{size: large}"
	if plan := planFor(t, situation(t, values), opts, opening.Add(time.Hour)); plan.Move != gate.CloseUp {
		t.Errorf("large: %+v", plan)
	}
}

func TestAValueShownFromBeforeAnOperationEndedIsNoProof(t *testing.T) {
	const ended = `- {type: LastAsyncOperation, status: "True", lastTransitionTime: "2026-01-01T00:00:20Z"}` + "\n"

	for transition, closed := range map[string]bool{"2026-01-01T00:00:10Z": false, "2026-01-01T00:00:21Z": true} {
		u := conditions(t, open(t, nil), ended+`- {type: Synced, status: "True", observedGeneration: 9, lastTransitionTime: "`+transition+`"}`)

		plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(30*time.Second))
		if (plan.Move == gate.CloseUp) != closed {
			t.Errorf("%s: %+v", transition, plan)
		}
	}
}

func TestAFieldThatAnAllowanceNamesIsCompared(t *testing.T) {
	u := open(t, map[string]string{
		"GATE": strings.Replace(isOpen, "source: {type: Policy", "source: {type: Policy, field: spec.forProvider.size", 1), "ATPROVIDER": "{size: small}",
	})
	annotations := u.GetAnnotations()
	delete(annotations, v1alpha1.AnnotationTrace)
	u.SetAnnotations(annotations)

	if plan := planFor(t, u, gate.Options{LateInitialize: true}, opening.Add(time.Hour)); !strings.Contains(plan.Why, "spec.forProvider.size") {
		t.Errorf("PlanFor: %+v", plan)
	}
}

func TestAnOpeningThatHasLandedByTheTimeItIsRecordedCloses(t *testing.T) {
	u := situation(t, map[string]string{"POLICIES": "[Observe, LateInitialize, Update]", "ALLOWANCES": update, "OBSERVED": "8"})
	u.SetGeneration(8)

	plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening)
	if plan.Move != gate.CloseUp || plan.Record.Consumed != 8 || len(plan.Allowances) > 0 {
		t.Errorf("PlanFor: %+v", plan)
	}
}
