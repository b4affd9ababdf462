// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// called gives a managed resource the name of its external object.
func called(u *unstructured.Unstructured, external string) *unstructured.Unstructured {
	_ = unstructured.SetNestedField(u.Object, external, "spec", "forProvider", "manifest", "metadata", "name")

	return u
}

var errNotSynced = errors.New("not synced")

func TestWhatTwoManagedResourcesStandForIsDeletedByNone(t *testing.T) {
	other := func(change func(*unstructured.Unstructured)) []unstructured.Unstructured {
		u := called(situation(t, map[string]string{"GATE": closed}), "db")
		u.SetName("another")
		change(u)

		return []unstructured.Unstructured{*u}
	}
	same := func(*unstructured.Unstructured) {}
	deletes := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	}
	releases := func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		annotations[v1alpha1.AnnotationRelease] = v1alpha1.ReleaseOrphan
		u.SetAnnotations(annotations)
	}
	waits := "represents the same external object"

	for name, tc := range map[string]struct {
		reason   string
		values   map[string]string
		others   []unstructured.Unstructured
		err      error
		deleting bool
		move     gate.Move
		why      string
	}{
		"Alone":     {reason: "Nothing else is there.", move: gate.OpenUp, why: "hans"},
		"Itself":    {reason: "It is listed, too.", others: other(func(u *unstructured.Unstructured) { u.SetName("x") }), move: gate.OpenUp, why: "hans"},
		"Another":   {reason: "It would be deleted for both.", others: other(same), move: gate.Stay, why: waits},
		"Deleting":  {reason: "Not while it is being deleted either.", others: other(same), deleting: true, move: gate.Stay, why: waits},
		"Opened":    {reason: "Another came while the gate was open.", values: map[string]string{"GATE": delOpen, "POLICIES": deleteSet}, others: other(same), deleting: true, move: gate.CloseUp, why: waits},
		"OpenedYet": {reason: "And while it was not being deleted yet.", values: map[string]string{"GATE": delOpen, "POLICIES": deleteSet}, others: other(same), move: gate.CloseUp, why: waits},
		"Elsewhere": {reason: "Another external object.", others: other(func(u *unstructured.Unstructured) { called(u, "db-2") }), move: gate.OpenUp, why: "hans"},
		"Observes":  {reason: "Who only observes needs nobody's leave.", others: other(func(u *unstructured.Unstructured) { ask(u, "[Observe]") }), move: gate.OpenUp, why: "hans"},
		"Released":  {reason: "Nor does who leaves it behind.", others: other(releases), move: gate.OpenUp, why: "hans"},
		"GoesToo": {reason: "Both are to go with it.", others: other(func(u *unstructured.Unstructured) {
			deletes(u)
			u.SetAnnotations(called(situation(t, map[string]string{"GATE": closed, "ALLOWANCES": del}), "db").GetAnnotations())
		}), move: gate.OpenUp, why: "hans"},
		"GoesAlone": {reason: "That one is not to go with it.", others: other(deletes), move: gate.Stay, why: waits},
		"Ungated": {reason: "What has no gate is not ours to wait for.", others: other(func(u *unstructured.Unstructured) {
			u.SetAnnotations(nil)
		}), move: gate.OpenUp, why: "hans"},
		"Unknown": {reason: "Nobody knows yet.", err: errNotSynced, move: gate.Stay, why: "not known yet"},
		"UnknownOpen": {
			reason: "A provider that may delete no longer would leave it behind.", values: map[string]string{"GATE": delOpen, "POLICIES": deleteSet},
			err: errNotSynced, deleting: true, move: gate.Stay, why: "gone",
		},
		"UnknownOpenYet": {
			reason: "Nor is it closed before.", values: map[string]string{"GATE": delOpen, "POLICIES": deleteSet}, err: errNotSynced, move: gate.Stay, why: "gone",
		},
		"Update": {reason: "What somebody asked for is served.", values: map[string]string{"ALLOWANCES": update}, others: other(same), move: gate.OpenUp, why: "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{"GATE": closed, "ALLOWANCES": del, "OBSERVED": "8"}
			maps.Copy(values, tc.values)

			u := called(situation(t, values), "db")
			u.SetName("x")

			if tc.deleting {
				deletes(u)
			}

			opts := gate.Options{LateInitialize: true, Settle: time.Minute, Gated: func() ([]unstructured.Unstructured, error) { return tc.others, tc.err }}

			plan := planFor(t, u, opts, opening)
			if plan.Move != tc.move || !strings.Contains(plan.Why, tc.why) {
				t.Fatalf("%s\nPlanFor: %+v", tc.reason, plan)
			}

			if waits := tc.why == waits; waits != (plan.Twin != nil) || waits && plan.Again == 0 {
				t.Errorf("%s\nthe other one: %v, again after %s", tc.reason, plan.Twin, plan.Again)
			}
		})
	}
}

func TestWhatIsNotKnownToBeItsOwnIsKeptWhereItIsDeleted(t *testing.T) {
	existed := strings.Replace(closed, "consumed: 3", "consumed: 3, existed: true", 1)
	creating := `kausality.io/gate: "{v: 1, state: Open, actions: [Create], creating: true, generation: 9, since: 2026-01-01T00:00:00Z}"`
	createSet := "[Observe, LateInitialize, Create]"

	for name, tc := range map[string]struct {
		reason string
		values map[string]string
		change func(*unstructured.Unstructured)
		keeps  bool
		move   gate.Move
		set    string
	}{
		"Made":    {reason: "It was made, or changed, by this one.", values: map[string]string{"GATE": closed}, move: gate.OpenUp, set: "Observe Delete"},
		"Existed": {reason: "It was there before.", values: map[string]string{"GATE": existed}, keeps: true, move: gate.CloseUp, set: "Observe LateInitialize"},
		"NoGrant": {reason: "Nobody deletes it.", values: map[string]string{"GATE": existed, "ALLOWANCES": "c: d"}, move: gate.Stay, set: "Observe LateInitialize"},
		"Another": {
			reason: "It is not the one that it was.", values: map[string]string{"GATE": strings.Replace(closed, "consumed: 3", "consumed: 3, object: before", 1)},
			change: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "arn:other", "status", "atProvider", "arn")
			}, keeps: true, move: gate.CloseUp, set: "Observe LateInitialize",
		},
		"NotLooked": {reason: "Its provider has not come by.", values: map[string]string{"GATE": creating, "POLICIES": createSet, "OBSERVED": "1"}, keeps: true, move: gate.OpenUp, set: "Observe LateInitialize Create"},
		"Looks": {
			reason: "Its provider is about to say whether it was there.", values: map[string]string{"GATE": creating, "POLICIES": createSet, "OBSERVED": "1"},
			change: func(u *unstructured.Unstructured) { u.SetFinalizers([]string{managed.ProviderFinalizer}) }, move: gate.Stay, set: "Observe LateInitialize Create",
		},
		"Says": {
			reason: "It says so.", values: map[string]string{"GATE": creating, "POLICIES": createSet},
			change: func(u *unstructured.Unstructured) { u.SetFinalizers([]string{managed.ProviderFinalizer}) }, keeps: true, move: gate.CloseUp, set: "Observe",
		},
		"Orphan": {
			reason: "What is asked for anyway needs no release.", values: map[string]string{"GATE": existed},
			change: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "Orphan", "spec", "deletionPolicy")
			}, move: gate.Stay, set: "Observe LateInitialize",
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{"ALLOWANCES": del}
			maps.Copy(values, tc.values)

			u := situation(t, values)
			if tc.change != nil {
				tc.change(u)
			}

			plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(time.Hour))
			if plan.Move != tc.move || plan.Record.Keeps != tc.keeps || strings.Join(plan.Policies, " ") != tc.set {
				t.Fatalf("%s\nPlanFor: %+v", tc.reason, plan)
			}

			if plan.Move == gate.Stay {
				return
			}

			u = follow(t, u, plan)
			if tc.keeps {
				annotations := u.GetAnnotations()
				annotations[v1alpha1.AnnotationRelease] = v1alpha1.ReleaseOrphan
				u.SetAnnotations(annotations)
			}

			if next := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(time.Hour)); next.Move != gate.Stay && tc.keeps {
				t.Errorf("%s\nonce more: %+v", tc.reason, next)
			}
		})
	}
}

func TestAWindowOpensNoGateOfWhatTwoStandFor(t *testing.T) {
	window := v1alpha1.UpgradeAllowance{
		ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "w-uid"},
		Spec: v1alpha1.UpgradeAllowanceSpec{
			ValidFrom: metav1.NewTime(opening.Add(-time.Hour)), ValidUntil: metav1.NewTime(opening.Add(time.Hour)),
			Selector: &metav1.LabelSelector{},
			Allow:    []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Mutations: []string{management.ActionUpdate}}},
		},
	}

	another := called(situation(t, map[string]string{"GATE": closed}), "db")
	another.SetName("another")

	const given = "{relation: External, mutations: [Update], generation: 8, initiator: w, id: '8.0', source: {type: Window, name: w}}"

	underWay := map[string]string{
		"GATE": `kausality.io/gate: "{v: 1, state: Open, actions: [Update], generation: 9, since: 2026-01-01T00:00:00Z, consumed: 3, ` +
			`windows: [{name: w, uid: w-uid}], allowances: [` + given + `]}"`,
		"ALLOWANCES": `kausality.io/allowances: "[` + given + `]"`, "POLICIES": updateSet, "OBSERVED": "8",
	}

	for name, tc := range map[string]struct {
		reason string
		values map[string]string
		others []unstructured.Unstructured
		err    error
		move   gate.Move
	}{
		"Alone":        {reason: "Nothing else is there.", move: gate.OpenUp},
		"Another":      {reason: "It would be changed for both.", others: []unstructured.Unstructured{*another}, move: gate.Stay},
		"Unknown":      {reason: "Nobody knows yet.", err: errNotSynced, move: gate.Stay},
		"AnotherCame":  {reason: "One comes while it is open.", values: underWay, others: []unstructured.Unstructured{*another}, move: gate.CloseUp},
		"UnknownAgain": {reason: "Nobody knows any more, as after a restart.", values: underWay, err: errNotSynced, move: gate.Stay},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{"GATE": closed, "OBSERVED": "8"}
			maps.Copy(values, tc.values)

			u := called(situation(t, values), "db")
			u.SetName("x")

			opts := gate.Options{
				LateInitialize: true, Settle: time.Minute, Windows: []v1alpha1.UpgradeAllowance{window},
				Gated: func() ([]unstructured.Unstructured, error) { return tc.others, tc.err },
			}

			if plan := planFor(t, u, opts, opening); plan.Move != tc.move {
				t.Errorf("%s\nPlanFor: %+v", tc.reason, plan)
			}
		})
	}
}
