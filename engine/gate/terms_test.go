// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// policyGates are what some policies say of gates.
func policyGates(t *testing.T, settings map[string]string) func(string) *policy.Gate {
	t.Helper()

	out := map[string]*policy.Gate{}

	for name, text := range settings {
		in := &v1alpha1.GateSettings{}
		if err := yaml.UnmarshalStrict([]byte(text), in); err != nil {
			t.Fatal(err)
		}

		out[name], _ = policy.CompileGate(in) // Some are to be broken.
	}

	return func(name string) *policy.Gate { return out[name] }
}

// openFor is a gate that allowances of some policies hold open.
func openFor(allowances ...string) map[string]string {
	list := "[" + strings.Join(allowances, ", ") + "]"

	return map[string]string{
		"GATE":       `kausality.io/gate: "{v: 1, state: Open, actions: [Update], generation: 9, since: 2026-01-01T00:00:00Z, consumed: 3, allowances: ` + list + `}"`,
		"ALLOWANCES": `kausality.io/allowances: "` + list + `"`, "POLICIES": updateSet,
	}
}

const (
	ofA = "{relation: External, mutations: [Update], generation: 8, initiator: hans, policy: a, id: '8.0', source: {type: Policy, name: a}}"
	ofB = "{relation: External, mutations: [Update], generation: 7, initiator: anna, policy: b, id: '7.0', source: {type: Policy, name: b}}"
	// ofBSame is of the same generation as ofA, and about another field.
	ofBSame = "{relation: External, mutations: [Update], generation: 8, initiator: anna, policy: b, " +
		"id: '8.0', source: {type: Policy, name: b, field: spec.forProvider.color}}"
)

func TestAPolicySaysWhenAChangeHasLanded(t *testing.T) {
	now := opening.Add(10 * time.Second) // Nothing has settled.
	other := "{size: other}"

	cases := map[string]struct {
		reason   string
		gates    map[string]string
		open     []string
		external string
		values   map[string]string
		// colored changes the color in the same generation.
		colored bool
		closes  bool
		wait    managed.Wait
		broken  string
	}{
		"Holds": {
			reason: "A condition that holds takes the place of comparing the status, which shows something else here.",
			gates:  map[string]string{"a": "closeWhen: object.status.atProvider.size == 'other'"},
			open:   []string{ofA}, external: other, closes: true,
		},
		"DoesNotHold": {
			reason: "And one that does not keeps the gate open, though the status shows the change.",
			gates:  map[string]string{"a": "closeWhen: object.status.atProvider.size == 'other'"},
			open:   []string{ofA}, external: "{size: large}", wait: managed.WaitCondition,
		},
		"NotSynced": {
			reason: "Synced comes before it.",
			gates:  map[string]string{"a": "closeWhen: 'true'"},
			open:   []string{ofA}, external: other, values: map[string]string{"OBSERVED": "8"}, wait: managed.WaitSynced,
		},
		"Operation": {
			reason: "So do asynchronous operations.",
			gates:  map[string]string{"a": "closeWhen: 'true'"},
			open:   []string{ofA}, external: other, values: map[string]string{"ASYNC": `- {type: AsyncOperation, status: "False", reason: Ongoing}`}, wait: managed.WaitOperation,
		},
		"WithoutObservedGeneration": {
			reason: "A Synced condition that may be from before the opening proves nothing before it has settled, whatever the condition says.",
			gates:  map[string]string{"a": "closeWhen: 'true'"},
			open:   []string{ofA}, external: other, values: map[string]string{"OBSERVED": "0"}, wait: managed.WaitSettle,
		},
		"CannotBeEvaluated": {
			reason: "What cannot be evaluated does not hold, and is reported.",
			gates:  map[string]string{"a": "closeWhen: object.status.atProvider.count > 3"},
			open:   []string{ofA}, external: "{size: large}", wait: managed.WaitCondition, broken: "no such key: count",
		},
		"CostsTooMuch": {
			reason: "Nor does what costs too much.",
			gates:  map[string]string{"a": "closeWhen: \"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, object.spec.forProvider.size != string(a+b+c+d+e))))))\""},
			open:   []string{ofA}, external: "{size: large}", wait: managed.WaitCondition, broken: "cost limit exceeded",
		},
		"DoesNotCompile": {
			reason: "Nor does what does not compile, which the webhook refuses while it is there.",
			gates:  map[string]string{"a": "closeWhen: object.status."},
			open:   []string{ofA}, external: "{size: large}", wait: managed.WaitCondition, broken: "cannot compile CEL",
		},
		"EveryOneOfSeveral": {
			reason: "Of several policies every condition must hold.",
			gates:  map[string]string{"a": "closeWhen: 'true'", "b": "closeWhen: 'false'"},
			open:   []string{ofA, ofB}, external: other, wait: managed.WaitCondition,
		},
		"AnotherWithout": {
			reason: "What a policy without a condition allowed is compared with the status beside it.",
			gates:  map[string]string{"b": "closeWhen: 'true'"},
			open:   []string{ofA, ofB}, external: other, wait: managed.WaitExternal,
		},
		"AnotherOfTheSameGeneration": {
			reason: "And what the one with the condition allowed is not.",
			gates:  map[string]string{"b": "closeWhen: 'true'"},
			open:   []string{ofA, ofBSame}, external: "{size: large, color: other}",
			colored: true, closes: true,
		},
		"NoSuchPolicy": {
			reason: "A policy that is gone says nothing.",
			gates:  map[string]string{"c": "closeWhen: 'true'"},
			open:   []string{ofA}, external: other, wait: managed.WaitExternal,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			values := openFor(tc.open...)
			values["ATPROVIDER"] = tc.external

			maps.Copy(values, tc.values)
			u := situation(t, values)

			if tc.colored {
				_ = unstructured.SetNestedField(u.Object, "red", "spec", "forProvider", "color") // It is a map.

				annotations := u.GetAnnotations()
				annotations[v1alpha1.AnnotationTrace] += "- {field: spec.forProvider.color, generation: 8, initiator: anna}\n"
				u.SetAnnotations(annotations)
			}

			opts := gate.Options{LateInitialize: true, Settle: time.Minute, PolicyGate: policyGates(t, tc.gates)}
			plan := planFor(t, u, opts, now)

			if closes := plan.Move == gate.CloseUp; closes != tc.closes || plan.Wait != tc.wait {
				t.Errorf("%s\ncloses: %v, waits for %q; want %v, %q: %s", tc.reason, closes, plan.Wait, tc.closes, tc.wait, plan.Why)
			}

			if (plan.Broken != nil) != (tc.broken != "") || plan.Broken != nil && !strings.Contains(plan.Broken.Error(), tc.broken) {
				t.Errorf("%s\nbroken: %v, want %q", tc.reason, plan.Broken, tc.broken)
			}
		})
	}
}

func TestAPolicySaysHowLongAGateIsOpen(t *testing.T) {
	cases := map[string]struct {
		reason  string
		gates   map[string]string
		open    []string
		values  map[string]string
		after   time.Duration
		closes  bool
		overdue bool
		again   time.Duration
	}{
		"Default": {
			reason: "Who says nothing gets what the manager was told.",
			open:   []string{ofA}, after: 59 * time.Minute, again: time.Minute,
		},
		"Shorter": {
			reason: "A policy may be less patient, and warn.",
			gates:  map[string]string{"a": "maxOpen: 5m"},
			open:   []string{ofA}, after: 5 * time.Minute, overdue: true,
		},
		"Longer": {
			reason: "Or more.",
			gates:  map[string]string{"a": "maxOpen: 2h"},
			open:   []string{ofA}, after: time.Hour, again: time.Hour,
		},
		"Closes": {
			reason: "It may have the gate closed.",
			gates:  map[string]string{"a": "{maxOpen: 5m, whenOverdue: Close}"},
			open:   []string{ofA}, after: 5 * time.Minute, overdue: true, closes: true,
		},
		"ShortestOfSeveral": {
			reason: "The least patient of several policies counts, and it is enough that one says Close.",
			gates:  map[string]string{"a": "{maxOpen: 5m}", "b": "{maxOpen: 2h, whenOverdue: Close}"},
			open:   []string{ofA, ofB}, after: 5 * time.Minute, overdue: true, closes: true,
		},
		"OneOfTwoSaysNothing": {
			reason: "One that says nothing counts with the default.",
			gates:  map[string]string{"b": "{maxOpen: 2h}"},
			open:   []string{ofA, ofB}, after: time.Hour, overdue: true,
		},
		"Settles": {
			reason: "A policy says how long to settle.",
			gates:  map[string]string{"a": "settle: 3s"},
			open:   []string{ofA}, values: map[string]string{"SYNCED": "True", "ATPROVIDER": "{}"}, after: 3 * time.Second, closes: true,
		},
		"SettlesLongest": {
			reason: "The longest of several counts.",
			gates:  map[string]string{"a": "settle: 3s", "b": "settle: 10s"},
			open:   []string{ofA, ofB}, values: map[string]string{"SYNCED": "True", "ATPROVIDER": "{}"}, after: 3 * time.Second, again: 7 * time.Second,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			values := openFor(tc.open...)
			values["SYNCED"] = "False"

			maps.Copy(values, tc.values)

			opts := gate.Options{LateInitialize: true, Settle: time.Minute, MaxOpen: time.Hour, PolicyGate: policyGates(t, tc.gates)}
			plan := planFor(t, situation(t, values), opts, opening.Add(tc.after))

			if closes := plan.Move == gate.CloseUp; closes != tc.closes || plan.Overdue != tc.overdue || plan.Again != tc.again {
				t.Errorf("%s\ncloses: %v, overdue: %v, again in %s: %s", tc.reason, closes, plan.Overdue, plan.Again, plan.Why)
			}
		})
	}
}

func TestAGateThatAPolicyHadClosedRestsAsLongAsThatSays(t *testing.T) {
	opts := gate.Options{
		LateInitialize: true, Settle: time.Minute, MaxOpen: time.Hour,
		PolicyGate: policyGates(t, map[string]string{"a": "{maxOpen: 5m, whenOverdue: Close}"}),
	}
	values := openFor(ofA)
	values["SYNCED"] = "False"
	u := situation(t, values)

	u = follow(t, u, planFor(t, u, opts, opening.Add(5*time.Minute)))
	if plan := planFor(t, u, opts, opening.Add(6*time.Minute)); plan.Move != gate.Stay || plan.Again != 4*time.Minute {
		t.Errorf("resting: %+v", plan)
	}

	if plan := planFor(t, u, opts, opening.Add(10*time.Minute)); plan.Move != gate.OpenUp {
		t.Errorf("rested: %+v", plan)
	}
}

func TestWhoAskedIsSaidOfOpeningsAndClosings(t *testing.T) {
	opts := gate.Options{LateInitialize: true, Settle: time.Minute, MaxOpen: time.Hour}
	asked := "{relation: External, mutations: [Update], generation: 8, initiator: hans, policy: a, " +
		"id: '8.0', source: {type: Policy, name: a, field: spec.forProvider.size}, trace: [" +
		"{kind: Claim, name: db, generation: 3, field: spec.size, attestations: {'metadata.annotations[jira]': INFRA-7}}, " +
		"{kind: Object, name: db, generation: 8, field: spec.forProvider.size}]}"
	const want = "hans (policy a, metadata.annotations[jira]=INFRA-7)"

	u := situation(t, map[string]string{"GATE": closed, "ALLOWANCES": `kausality.io/allowances: "[` + asked + `]"`, "OBSERVED": "8"})

	plan := planFor(t, u, opts, opening)
	if got := gate.Causes(plan.By); plan.Move != gate.OpenUp || got != want {
		t.Errorf("%s: %s", plan.Move, got)
	}

	u = follow(t, u, plan)

	if plan = planFor(t, u, opts, opening); plan.Move != gate.Stay || gate.Causes(plan.By) != want || plan.Wait != managed.WaitSynced {
		t.Errorf("waiting: %s: %+v", gate.Causes(plan.By), plan)
	}

	u = synced(t, u, u.GetGeneration())

	if plan = planFor(t, u, opts, opening.Add(time.Hour/2)); plan.Move != gate.CloseUp || gate.Causes(plan.By) != want {
		t.Errorf("closing: %s: %+v", gate.Causes(plan.By), plan)
	}

	u = follow(t, u, plan)
	setPolicies(u, management.ActionAll)

	if plan = planFor(t, u, opts, opening.Add(time.Hour)); plan.Move != gate.CloseUp || len(plan.By) > 0 {
		t.Errorf("put back, which is not allowed: %+v", plan.By)
	}
}
