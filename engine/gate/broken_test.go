// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// ask records what the Composition asks for.
func ask(u *unstructured.Unstructured, text string) {
	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationDesiredPolicies] = desired(text)
	u.SetAnnotations(annotations)
}

// desired records a list in YAML; what is none stays as it is.
func desired(list string) string {
	var set []string
	if yaml.Unmarshal([]byte(list), &set) != nil {
		return list
	}

	return management.FormatPolicies(set)
}

func allowances(t *testing.T, u *unstructured.Unstructured) []v1alpha1.Allowance {
	t.Helper()

	list, err := allowance.Parse(u)
	if err != nil {
		t.Fatal(err)
	}

	return list
}

func TestWhileAnAnnotationDoesNotParseNothingOpensAndNothingIsLost(t *testing.T) {
	cases := map[string]struct {
		reason     string
		values     map[string]string
		key, value string
		move       gate.Move
		set        []string
	}{
		"Record":           {"Without the record nobody knows what has served.", map[string]string{"GATE": closed, "ALLOWANCES": update}, v1alpha1.AnnotationGate, "- a", gate.Stay, []string{"Observe", "LateInitialize"}},
		"RecordOpen":       {"An open gate is closed, and nothing is written over it.", map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update}, v1alpha1.AnnotationGate, "- a", gate.CloseUp, []string{"Observe"}},
		"State":            {"A state of a later version is not readable either.", map[string]string{"GATE": closed, "ALLOWANCES": update}, v1alpha1.AnnotationGate, "{v: 1, state: Ajar, generation: 1}", gate.Stay, []string{"Observe", "LateInitialize"}},
		"Former":           {"Nor is one of a former version.", map[string]string{"GATE": closed, "ALLOWANCES": update}, v1alpha1.AnnotationGate, "{state: Closed, generation: 1}", gate.Stay, []string{"Observe", "LateInitialize"}},
		"FormerUngated":    {"What has no gate gets none by that.", map[string]string{"GATE": isOpen, "POLICIES": "['*']", "ALLOWANCES": update}, v1alpha1.AnnotationGate, "state: Ungated\ngeneration: 1\n", gate.Stay, []string{"Observe", "LateInitialize", "Create", "Update", "Delete"}},
		"UngatedOtherwise": {"The guards do not know it either.", map[string]string{"GATE": isOpen, "POLICIES": "['*']", "ALLOWANCES": update}, v1alpha1.AnnotationGate, "{v: 1, state: Ungated}", gate.Stay, []string{"Observe", "LateInitialize", "Create", "Update", "Delete"}},
		"FormerPolicies":   {"Nor is an annotation of a former version.", map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update}, "kausality.io/management-policies", "- Observe\n", gate.CloseUp, []string{"Observe"}},
		"FormerMode":       {"Mode Audit of a former version takes no gate away.", map[string]string{"GATE": isOpen, "POLICIES": "['*']", "ALLOWANCES": update}, "kausality.io/mode", "Audit", gate.CloseUp, []string{"Observe"}},
		"OtherText":        {"What is written otherwise is not what this version writes.", map[string]string{"GATE": closed, "ALLOWANCES": update}, v1alpha1.AnnotationDesiredPolicies, `{"v":1, "policies":["*"]}`, gate.Stay, []string{"Observe", "LateInitialize"}},
		"LaterPolicies":    {"Nor is what a later version writes.", map[string]string{"GATE": closed, "ALLOWANCES": update}, v1alpha1.AnnotationDesiredPolicies, `{"v":2,"policies":["*"]}`, gate.Stay, []string{"Observe", "LateInitialize"}},
		"Null":             {"Nor is none.", map[string]string{"GATE": closed, "ALLOWANCES": update}, v1alpha1.AnnotationGate, "null", gate.Stay, []string{"Observe", "LateInitialize"}},
		"Allowances":       {"Allowances that do not parse open nothing.", map[string]string{"GATE": closed}, v1alpha1.AnnotationAllowances, "{", gate.Stay, []string{"Observe", "LateInitialize"}},
		"AllowancesOpen":   {"So it is without losing them.", map[string]string{"GATE": isOpen, "POLICIES": updateSet}, v1alpha1.AnnotationAllowances, "{", gate.CloseUp, []string{"Observe"}},
		"AllowancesWide":   {"A hand edit is put back without losing them.", map[string]string{"GATE": closed, "POLICIES": "['*']"}, v1alpha1.AnnotationAllowances, "{", gate.CloseUp, []string{"Observe"}},
		"AllowancesFirst":  {"A resource never seen is closed.", map[string]string{"POLICIES": "['*']", "READY": "False"}, v1alpha1.AnnotationAllowances, "{", gate.CloseUp, []string{"Observe"}},
		"Asked":            {"Where nobody knows what the Composition asks for nothing opens.", map[string]string{"GATE": closed, "ALLOWANCES": update}, v1alpha1.AnnotationDesiredPolicies, "{a: b}", gate.Stay, []string{"Observe", "LateInitialize"}},
		"AskedOpen":        {"What is open is closed, though its change is on the way.", map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update, "SYNCED": "False"}, v1alpha1.AnnotationDesiredPolicies, "{", gate.CloseUp, []string{"Observe"}},
		"AskedWide":        {"But a hand edit is put back, within what is there.", map[string]string{"GATE": closed, "POLICIES": "[Observe, Update]", "ALLOWANCES": update}, v1alpha1.AnnotationDesiredPolicies, "{", gate.CloseUp, []string{"Observe"}},
		"AskedFirst":       {"A resource never seen is closed, within what is there.", map[string]string{"POLICIES": "[Observe, Create]", "READY": "False"}, v1alpha1.AnnotationDesiredPolicies, "{", gate.CloseUp, []string{"Observe"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := situation(t, tc.values)
			before := allowances(t, u)
			annotations := u.GetAnnotations()
			annotations[tc.key] = tc.value
			u.SetAnnotations(annotations)

			plan, err := gate.PlanFor(u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(time.Hour))
			if err == nil || !strings.HasPrefix(err.Error(), `Object "db": cannot `) || !strings.Contains(err.Error(), tc.key) {
				t.Errorf("%s\nPlanFor: error %v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.set, plan.Policies); plan.Move != tc.move || diff != "" {
				t.Errorf("%s\nPlanFor: %+v", tc.reason, plan)
			}

			if diff := cmp.Diff(before, plan.Allowances); plan.Move != gate.Stay && !plan.Unread && diff != "" {
				t.Errorf("%s\nallowances, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestATraceThatDoesNotParseIsNotCompared(t *testing.T) {
	u := open(t, nil)
	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationTrace] = "{"
	u.SetAnnotations(annotations)

	if plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(time.Second)); !strings.Contains(plan.Why, "settle") {
		t.Errorf("PlanFor: %+v", plan)
	}
}

func TestWhatTheCompositionAsksForIsTheUpperBound(t *testing.T) {
	all := strings.Replace(update, "[Update]", "['*']", 1)

	cases := map[string]struct {
		reason string
		asked  string
		values map[string]string
		move   gate.Move
		set    []string
	}{
		"Paused":      {"What is paused stays paused.", "[]", map[string]string{"GATE": closed, "POLICIES": "[]", "ALLOWANCES": all}, gate.Stay, []string{}},
		"PausedSince": {"What only observes is paused too: nothing was asked for.", "[]", map[string]string{"GATE": closed, "ALLOWANCES": all}, gate.CloseUp, []string{}},
		"PausedOpen":  {"What is open is paused.", "[]", map[string]string{"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update}, gate.CloseUp, []string{}},
		"PausedFirst": {"Also at first sight.", "[]", map[string]string{"POLICIES": "['*']"}, gate.CloseUp, []string{}},
		"Unpaused":    {"Afterwards it is open again for what it was open for.", "['*']", map[string]string{"GATE": isOpen, "POLICIES": "[]", "ALLOWANCES": update}, gate.OpenUp, []string{"Observe", "LateInitialize", "Update"}},
		"Unlocked":    {"Or closed.", "['*']", map[string]string{"GATE": closed, "POLICIES": "[]"}, gate.CloseUp, []string{"Observe"}},
		"Observed":    {"What is only observed stays so.", "[Observe]", map[string]string{"GATE": closed, "POLICIES": "[Observe]", "ALLOWANCES": all}, gate.Stay, []string{"Observe"}},
		"FirstSight":  {"At first sight as well.", "[Observe]", map[string]string{"POLICIES": "['*']", "READY": "False", "ALLOWANCES": all}, gate.CloseUp, []string{"Observe"}},
		"TakenOver":   {"A new resource is taken over within it.", "[Observe, Create]", map[string]string{"POLICIES": "['*']", "READY": "False"}, gate.TakeOver, []string{"Observe", "Create"}},
		"Star":        {"Everything is written out.", "['*']", map[string]string{"GATE": closed, "ALLOWANCES": all}, gate.OpenUp, []string{"Observe", "LateInitialize", "Create", "Update"}},
		"StarSeen":    {"What is there is compared by what it means.", "['*']", map[string]string{"GATE": strings.Replace(isOpen, "actions: [Update]", "actions: [Create, Update]", 1), "POLICIES": "[Update, Create, LateInitialize, Observe]", "SYNCED": "False"}, gate.Stay, []string{"Observe", "LateInitialize", "Create", "Update"}},
		"Part":        {"An allowance for more opens for what is asked.", "[Observe, Update, LateInitialize]", map[string]string{"GATE": closed, "ALLOWANCES": all}, gate.OpenUp, []string{"Observe", "LateInitialize", "Update"}},
		"Seen":        {"A resource that was ready opens at first sight for what is allowed.", "['*']", map[string]string{"POLICIES": "['*']", "ALLOWANCES": update}, gate.OpenUp, []string{"Observe", "LateInitialize", "Update"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := situation(t, tc.values)
			ask(u, tc.asked)

			plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening.Add(time.Hour))
			if diff := cmp.Diff(tc.set, plan.Policies); plan.Move != tc.move || diff != "" {
				t.Errorf("%s\nPlanFor: %+v", tc.reason, plan)
			}
		})
	}
}

func TestWhatNobodyCanServeDoesNotKeepAResourcePending(t *testing.T) {
	for name, values := range map[string]map[string]string{
		"Foreign":  {"GATE": closed, "ALLOWANCES": strings.Replace(update, "Update", "apply", 1)},
		"NotAsked": {"GATE": closed, "ALLOWANCES": strings.Replace(update, "Update", "Delete", 1)},
	} {
		u := situation(t, values)
		ask(u, "[Observe, Update]")

		if gate.Pending(u) {
			t.Errorf("%s: pending", name)
		}
	}

	u := situation(t, map[string]string{"GATE": closed})
	ask(u, "{")

	if !gate.Pending(u) {
		t.Error("where nobody knows what is asked for it is pending")
	}
}

func TestFieldsOfALaterVersionStayInTheRecord(t *testing.T) {
	u := situation(t, map[string]string{"GATE": strings.Replace(closed, "consumed: 3", "consumed: 3, colour: red", 1), "ALLOWANCES": update})

	for _, move := range []gate.Move{gate.OpenUp, gate.CloseUp} {
		plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening)
		if plan.Move != move || string(plan.Record.Unknown["colour"]) != `"red"` {
			t.Fatalf("PlanFor: %+v", plan)
		}

		u = follow(t, u, plan)
		u = synced(t, u, u.GetGeneration())
	}
}
