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

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	del       = `kausality.io/allowances: "[{relation: External, mutations: [Delete], generation: 8, initiator: hans, id: '8.0', source: {type: Deletion}}]"`
	delOpen   = `kausality.io/gate: "{v: 1, state: Open, actions: [Delete], generation: 9, since: 2026-01-01T00:00:00Z, consumed: 3, allowances: [{relation: External, mutations: [Delete], generation: 8, initiator: hans, id: '8.0', source: {type: Deletion}}]}"`
	deleteSet = "[Observe, Delete]"
)

func TestAResourceBeingDeletedHasAnOpenGateOnlyByAnAllowanceForDelete(t *testing.T) {
	both := `kausality.io/allowances: "[{relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}, {relation: External, mutations: [Delete], generation: 8, initiator: eve, id: '8.0', source: {type: Deletion}}]"`
	initial := []string{"Observe", "LateInitialize"}

	cases := map[string]struct {
		reason string
		values map[string]string
		asked  string
		orphan bool
		move   gate.Move
		set    []string
		why    string
	}{
		"Open":        {"It stays open until the resource is gone.", map[string]string{"GATE": delOpen, "POLICIES": deleteSet, "ALLOWANCES": del}, "", false, gate.Stay, []string{"Observe", "Delete"}, "gone"},
		"Failing":     {"Also while that fails, and however long.", map[string]string{"GATE": delOpen, "POLICIES": deleteSet, "ALLOWANCES": del, "SYNCED": "False"}, "", false, gate.Stay, []string{"Observe", "Delete"}, "gone"},
		"Forgotten":   {"Also without the allowance, which the record has.", map[string]string{"GATE": delOpen, "POLICIES": deleteSet}, "", false, gate.Stay, []string{"Observe", "Delete"}, "gone"},
		"Updated":     {"An Update allowed since does not get in the way.", map[string]string{"GATE": delOpen, "POLICIES": deleteSet, "ALLOWANCES": both}, "", false, gate.Stay, []string{"Observe", "Delete"}, "gone"},
		"Recreated":   {"A wider gate that has Delete will do.", map[string]string{"GATE": strings.Replace(delOpen, "actions: [Delete]", "actions: [Create, Delete]", 1), "POLICIES": "[Observe, LateInitialize, Create, Delete]", "ALLOWANCES": del}, "", false, gate.Stay, []string{"Observe", "LateInitialize", "Create", "Delete"}, "gone"},
		"PutBack":     {"A hand edit is put back.", map[string]string{"GATE": delOpen, "POLICIES": "[Observe]", "ALLOWANCES": del}, "", false, gate.OpenUp, []string{"Observe", "Delete"}, "hans"},
		"NoRecord":    {"No record, no opening.", map[string]string{"GATE": closed}, "", false, gate.Stay, initial, "without recorded permission"},
		"Update":      {"An Update allowed opens nothing now.", map[string]string{"GATE": closed, "ALLOWANCES": update}, "", false, gate.Stay, initial, "without recorded permission"},
		"UpdateOpen":  {"And what was open for it closes.", map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update}, "", false, gate.CloseUp, initial, "without recorded permission"},
		"Everything":  {"A set that nobody recorded deletes nothing.", map[string]string{"GATE": closed, "POLICIES": "['*']"}, "", false, gate.CloseUp, initial, "without recorded permission"},
		"FirstSight":  {"Nor does one from before Kausality.", map[string]string{"POLICIES": "['*']"}, "", false, gate.CloseUp, initial, "without recorded permission"},
		"Allowed":     {"An allowance opens, deletion timestamp or not.", map[string]string{"GATE": closed, "ALLOWANCES": del}, "", false, gate.OpenUp, []string{"Observe", "Delete"}, "hans"},
		"AllowedSeen": {"At first sight it does not close on the way, or the provider would orphan.", map[string]string{"POLICIES": "['*']", "ALLOWANCES": del}, "", false, gate.OpenUp, []string{"Observe", "Delete"}, "hans"},
		"AllowedBoth": {"Delete does not wait for an Update that no provider makes any more.", map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": both}, "", false, gate.OpenUp, []string{"Observe", "Delete"}, "eve"},
		"Consumed":    {"What has served does not open again.", map[string]string{"GATE": strings.Replace(closed, "consumed: 3", "consumed: 8", 1), "ALLOWANCES": del}, "", false, gate.Stay, initial, "without recorded permission"},
		"Orphan":      {"A deletion policy that orphans is kept: an explicit Delete would win over it.", map[string]string{"GATE": closed, "ALLOWANCES": del}, "", true, gate.Stay, initial, "orphan"},
		"NotAsked":    {"So is a Composition that never asked for Delete.", map[string]string{"GATE": closed, "POLICIES": "[Observe]", "ALLOWANCES": del}, "[Observe, Update]", false, gate.Stay, []string{"Observe"}, "orphan"},
		"NotAskedYet": {"Even where a hand edit opened it.", map[string]string{"GATE": closed, "POLICIES": "['*']", "ALLOWANCES": del}, "[Observe, Update]", false, gate.CloseUp, []string{"Observe"}, "orphan"},
		"Paused":      {"A paused one hangs, as its Composition asks.", map[string]string{"GATE": closed, "POLICIES": "[]", "ALLOWANCES": del}, "[]", false, gate.Stay, []string{}, "paused"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := situation(t, tc.values)
			u.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
			_ = unstructured.SetNestedField(u.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")

			if tc.asked != "" {
				ask(u, tc.asked)
			}

			if tc.orphan {
				_ = unstructured.SetNestedField(u.Object, "Orphan", "spec", "deletionPolicy")
			}

			plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(240*time.Hour))
			if plan.Move != tc.move || !strings.Contains(plan.Why, tc.why) {
				t.Fatalf("%s\nPlanFor: %+v", tc.reason, plan)
			}

			if diff := cmp.Diff(tc.set, plan.Policies); diff != "" {
				t.Errorf("%s\npolicies, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(allowances(t, u), plan.Allowances); diff != "" {
				t.Errorf("%s\nallowances, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeleteWithoutADeletionOpensNothing(t *testing.T) {
	ofField := func(text string) string { return strings.Replace(text, "type: Deletion", "type: Policy", 1) }

	for name, tc := range map[string]struct {
		values map[string]string
		move   gate.Move
	}{
		"Closed":     {map[string]string{"GATE": closed, "ALLOWANCES": ofField(del)}, gate.Stay},
		"Open":       {map[string]string{"GATE": ofField(delOpen), "POLICIES": deleteSet, "ALLOWANCES": ofField(del)}, gate.CloseUp},
		"WithUpdate": {map[string]string{"GATE": closed, "ALLOWANCES": strings.Replace(ofField(del), "[Delete]", "[Update, Delete]", 1)}, gate.OpenUp},
		"First":      {map[string]string{"POLICIES": "['*']", "ALLOWANCES": ofField(del)}, gate.CloseUp},
	} {
		t.Run(name, func(t *testing.T) {
			u := situation(t, tc.values)
			u.SetGeneration(9)

			plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(time.Hour))
			if plan.Move != tc.move || slices.Contains(plan.Policies, "Delete") {
				t.Errorf("PlanFor: %+v", plan)
			}
		})
	}
}

func TestNoDeletionPolicyThatOrphansIsOverruled(t *testing.T) {
	u := situation(t, map[string]string{"GATE": closed, "ALLOWANCES": strings.Replace(update, "[Update]", "['*']", 1)})
	_ = unstructured.SetNestedField(u.Object, "Orphan", "spec", "deletionPolicy")

	plan := planFor(t, u, gate.Options{LateInitialize: true}, opening)
	if diff := cmp.Diff([]string{"Observe", "LateInitialize", "Create", "Update"}, plan.Policies); plan.Move != gate.OpenUp || diff != "" {
		t.Errorf("PlanFor: %+v", plan)
	}
}

func TestADeletionPolicyThatOrphansDoesNotPause(t *testing.T) {
	u := situation(t, map[string]string{"POLICIES": "['*']"})
	ask(u, "[Delete]")
	_ = unstructured.SetNestedField(u.Object, "Orphan", "spec", "deletionPolicy")

	plan := planFor(t, u, gate.Options{LateInitialize: true}, opening)
	if diff := cmp.Diff([]string{"Observe"}, plan.Policies); plan.Move != gate.CloseUp || diff != "" {
		t.Errorf("PlanFor: %+v", plan)
	}
}

// history plays plans against a provider that shows nothing and syncs at once.
func history(t *testing.T, u *unstructured.Unstructured, rounds int) (sets []string, last *unstructured.Unstructured) {
	t.Helper()

	now := opening

	for range rounds {
		plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, now)
		if plan.Move != gate.Stay {
			u = follow(t, u, plan)
			sets = append(sets, strings.Join(plan.Policies, " "))
		}

		u = synced(t, u, u.GetGeneration())
		now = now.Add(40 * time.Second)
	}

	return sets, u
}

// ofDeletion is the allowance that the deletion of a managed resource gives it.
func ofDeletion(generation int64, who string) v1alpha1.Allowance {
	a := fixture.Sourced(v1alpha1.Allowance{
		Relation: v1alpha1.RelationExternal, Mutations: []string{"Delete"}, Generation: generation, Initiator: who,
	})
	a.Source = v1alpha1.AllowanceSource{Type: v1alpha1.SourceDeletion}

	return a
}

func TestActionsThatNoSetHoldsAreServedInTurnAndOnce(t *testing.T) {
	cases := map[string]struct {
		reason     string
		allowances string
		want       []string
		left       []v1alpha1.Allowance
	}{
		"UpdateDelete": {
			reason:     "Delete is for a deletion, and a field has none.",
			allowances: "[{relation: External, mutations: [Delete, Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]",
			want:       []string{"Observe LateInitialize Update", "Observe"},
		},
		"OfTwo": {
			reason:     "A deletion waits for no update.",
			allowances: "[{relation: External, mutations: [Delete], generation: 7, initiator: hans, id: '7.0', source: {type: Deletion}}, {relation: External, mutations: [Update], generation: 8, initiator: eve, id: '8.0', source: {type: Policy}}]",
			want:       []string{"Observe Delete"},
			left: []v1alpha1.Allowance{ofDeletion(7, "hans"), fixture.Sourced(v1alpha1.Allowance{
				Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}, Generation: 8, Initiator: "eve",
			})},
		},
		"Delete": {
			reason:     "LateInitialize gives way to Delete.",
			allowances: "[{relation: External, mutations: [Delete], generation: 8, initiator: hans, id: '8.0', source: {type: Deletion}}]",
			want:       []string{"Observe Delete"},
			left:       []v1alpha1.Allowance{ofDeletion(8, "hans")},
		},
		"Recreate": {
			reason:     "What is to be made anew is created where it is gone: no provider deletes it for that.",
			allowances: "[{relation: External, mutations: [Delete, Create], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]",
			want:       []string{"Observe LateInitialize Create", "Observe"},
		},
		"CreateThenDelete": {
			reason:     "Of two allowances Create lands, and Delete stays until the resource is gone.",
			allowances: "[{relation: External, mutations: [Create], generation: 7, initiator: hans, id: '7.0', source: {type: Policy}}, {relation: External, mutations: [Delete], generation: 8, initiator: eve, id: '8.0', source: {type: Deletion}}]",
			want:       []string{"Observe LateInitialize Create Delete", "Observe Delete"},
			left:       []v1alpha1.Allowance{ofDeletion(8, "eve")},
		},
		"Everything": {
			reason:     "Everything is a set, without the deletion that nobody asked for.",
			allowances: "[{relation: External, mutations: ['*'], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]",
			want:       []string{"Observe LateInitialize Create Update", "Observe"},
		},
		"Foreign": {
			reason:     "Another system's verbs stay when ours have served.",
			allowances: "[{relation: External, mutations: [apply, Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]",
			want:       []string{"Observe LateInitialize Update", "Observe"},
			left:       fixture.AllSourced([]v1alpha1.Allowance{{Relation: v1alpha1.RelationExternal, Mutations: []string{"apply"}, Generation: 8, Initiator: "hans"}}),
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := situation(t, map[string]string{"GATE": closed, "ATPROVIDER": "{}"})
			annotations := u.GetAnnotations()
			annotations[v1alpha1.AnnotationAllowances] = tc.allowances
			u.SetAnnotations(annotations)

			sets, last := history(t, u, 12)
			if diff := cmp.Diff(tc.want, sets); diff != "" {
				t.Errorf("%s\nsets, -want, +got:\n%s", tc.reason, diff)
			}

			left := allowances(t, last)
			if len(left) == 0 {
				left = nil
			}

			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("%s\nallowances, -want, +got:\n%s", tc.reason, diff)
			}

			// A stale write brings back what the resource carried.
			annotations = last.GetAnnotations()
			annotations[v1alpha1.AnnotationAllowances] = tc.allowances
			last.SetAnnotations(annotations)

			if sets, _ = history(t, last, 12); len(sets) > 0 {
				t.Errorf("%s\nafter a stale write: %v", tc.reason, sets)
			}
		})
	}
}

func TestADeletionThatIsCalledOffClosesTheGate(t *testing.T) {
	u := situation(t, map[string]string{"GATE": delOpen, "POLICIES": deleteSet})
	u.SetGeneration(9)

	plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(time.Second))
	if diff := cmp.Diff([]string{"Observe"}, plan.Policies); plan.Move != gate.CloseUp || diff != "" {
		t.Fatalf("PlanFor: %+v", plan)
	}

	if plan.Record.State != v1alpha1.GateClosed || len(plan.Record.Actions) > 0 || !strings.Contains(plan.Why, "cancelled") {
		t.Errorf("PlanFor: %+v", plan)
	}
}
