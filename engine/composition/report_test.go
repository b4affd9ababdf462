// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAnXRIsPendingUntilWhatItComposesHasCaughtUp(t *testing.T) {
	nested := func(status string) string {
		return "{apiVersion: example.org/v1alpha1, kind: XNetwork, metadata: {name: net, generation: 3}, spec: {a: b}, status: {" + status + "}}"
	}

	cases := map[string]struct {
		reason, observed string
		want             string
	}{
		"Managed":      {"A managed resource with a closed gate.", observedRDS, ""},
		"Open":         {"One with an open gate.", edit(t, observedRDS, "state: Closed", "state: Open"), "RDSInstance db-rds is being changed"},
		"Nested":       {"Another XR that has seen its generation.", nested("conditions: [{type: Synced, status: 'True', observedGeneration: 3}]"), ""},
		"NestedBehind": {"One that has not.", nested("conditions: [{type: Synced, status: 'True', observedGeneration: 2}]"), "XNetwork net is being changed"},
		"NestedBusy":   {"One whose own function is at it.", nested("conditions: [{type: Synced, status: 'True', observedGeneration: 3}, " + fixture.State(v1alpha1.PhaseProgressing, 3, 0) + "]"), "XNetwork net is being changed"},
		"NestedDone":   {"One whose own function is done.", nested("conditions: [" + fixture.State(v1alpha1.PhaseSettled, 3, 0) + "]"), ""},
		"Plain":        {"A kind that reports nothing.", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", ""},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := object(t, tc.observed)
			desired := map[string]any{"apiVersion": observed.GetAPIVersion(), "kind": observed.GetKind()}

			if tc.observed != "" && observed.GetKind() == "RDSInstance" {
				desired = object(t, desiredRDS).Object
			}

			req := requestFor(t, edit(t, steadyXR, "ALLOWANCES", "[]"), tc.observed, "")
			req.Desired = &unstructured.Unstructured{Object: desired}

			if out := composition.Decide(req); out.Pending != tc.want || len(out.Held) > 0 {
				t.Errorf("%s\npending %q, held %v; want %q", tc.reason, out.Pending, out.Held, tc.want)
			}
		})
	}
}

func TestAnXRSaysHowItIsDoing(t *testing.T) {
	xr := object(t, "{kind: X, metadata: {name: db, generation: 3, annotations: {kausality.io/initialized: '{\"v\":1}'}}}")
	held := func(n int) []condition.Held {
		out := make([]condition.Held, n)
		for i := range out {
			out[i] = condition.Held{Resource: "A a", Change: v1alpha1.HeldChange{Field: "f", From: "1", Missing: "why"}}
		}

		return out
	}

	cases := map[string]struct {
		held     []condition.Held
		pending  []string
		problems []string
		want     condition.Status
	}{
		"Settled":  {nil, nil, nil, condition.Status{Allowed: true, Reason: "Allowed", Message: "generation 3: settled"}},
		"Progress": {nil, []string{"a", "b"}, nil, condition.Status{Allowed: true, Reason: "Allowed", Message: "generation 3: in progress"}},
		"Held":     {held(1), nil, nil, condition.Status{Reason: "Held", Message: "generation 3: settled, 1 change held: f of A a (1 → (unset)); why. kubectl kausality pending x./db"}},
		"Problem":  {nil, nil, []string{"p", "q"}, condition.Status{Allowed: true, Reason: "Allowed", Message: "generation 3: settled, 2 problems: p; q"}},
		"Many":     {held(7), nil, nil, condition.Status{Reason: "Held", Message: "generation 3: settled, 7 changes held: " + strings.Repeat("f of A a; ", 6) + "f of A a. kubectl kausality pending x./db"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, condition.Summarize(xr, condition.Findings{Composed: 1, Held: tc.held, Pending: tc.pending, Problems: tc.problems}),
				cmpopts.IgnoreFields(condition.Status{}, "Progress", "News")); diff != "" {
				t.Errorf("Summarize, -want, +got:\n%s", diff)
			}
		})
	}

	young := object(t, "{kind: X, metadata: {name: db, generation: 1}}")
	const unanswered = "nobody has answered"

	for _, tc := range []struct {
		want string
		of   condition.Findings
	}{
		{"generation 1: initializing", condition.Findings{Ready: true, Composed: 1, Pending: []string{"a"}}},
		{"generation 1: initializing", condition.Findings{Composed: 1}},
		{"generation 1: settled", condition.Findings{Ready: true, Composed: 1}},
		{"generation 1: initializing", condition.Findings{Ready: true}},
		{"generation 1: initializing: " + unanswered, condition.Findings{Ready: true, Composed: 1, Pending: []string{"a"}, Unanswered: unanswered}},
	} {
		if got := condition.Summarize(young, tc.of); got.Message != tc.want {
			t.Errorf("Summarize of a new XR: %q, want %q", got.Message, tc.want)
		}
	}

	news := func(f condition.Findings) string {
		s := condition.Summarize(young, f)

		return condition.List(young, &s, nil, f.Held, nil, false).News
	}
	first := news(condition.Findings{Composed: 1, Held: held(1)})

	for name, tc := range map[string]struct {
		same bool
		of   condition.Findings
	}{
		"Progress": {true, condition.Findings{Ready: true, Composed: 1, Held: held(1), Pending: []string{"a"}}},
		"More":     {false, condition.Findings{Composed: 1, Held: held(2)}},
		"Problem":  {false, condition.Findings{Composed: 1, Held: held(1), Problems: []string{"p\nq"}}},
		"Other":    {false, condition.Findings{Composed: 1, Problems: []string{"a"}}},
		"None":     {false, condition.Findings{Composed: 1}},
	} {
		if got := news(tc.of); (got == first) != tc.same {
			t.Errorf("%s: the same news: %v, want %v", name, got == first, tc.same)
		}
	}

	bound := object(t, "{kind: X, metadata: {name: db, annotations: {kausality.io/held: '[{field: spec.size, from: a, to: b, missing: why}]'}}}")
	if got := condition.HeldOn(bound); len(got) != 1 || got[0].String() != "spec.size of X db (a → b); why" {
		t.Errorf("HeldOn: %v", got)
	}

	if got := condition.HeldOn(object(t, "{metadata: {annotations: {kausality.io/held: '{'}}}")); got != nil {
		t.Errorf("HeldOn of what cannot be read: %v", got)
	}
}

// TestAConditionNamesTheCommandThatShowsItsHeldChanges by the object that people edit, or by the XR where nobody can approve them.
func TestAConditionNamesTheCommandThatShowsItsHeldChanges(t *testing.T) {
	const (
		xr    = `kind: XStore, apiVersion: example.org/v1`
		claim = `spec: {claimRef: {apiVersion: example.org/v1, kind: Store, namespace: team-a, name: corner}}`
		owner = `ownerReferences: [{apiVersion: example.org/v1, kind: Mall, name: south, uid: m, controller: true}]`
		held  = `annotations: {kausality.io/held: '[{field: spec.size, from: a, to: b, missing: why, digest: "sha256:1"}]'}`
		old   = `annotations: {kausality.io/held: '[{field: spec.size, from: a, to: b, missing: why}]'}`
	)

	listed := condition.Held{
		Change: v1alpha1.HeldChange{Field: "spec.size", From: "a", To: "b", Missing: "why", Digest: "sha256:2"},
	}
	passed := listed
	passed.Passed = true

	for reason, tc := range map[string]struct {
		xr     string
		listed []condition.Held
		want   string
	}{
		"What an XR of a Claim composes": {
			xr: `{` + xr + `, metadata: {name: corner-x}, ` + claim + `}`, listed: []condition.Held{listed},
			want: "pending store.example.org/corner -n team-a",
		},
		"What a Claim asks for": {
			xr: `{` + xr + `, metadata: {name: corner-x, ` + held + `}, ` + claim + `}`, want: "pending store.example.org/corner -n team-a",
		},
		"What it asked for when there were no digests": {xr: `{` + xr + `, metadata: {name: corner-x, ` + old + `}, ` + claim + `}`, want: "pending store.example.org/corner -n team-a"},
		"What an XR that people edit composes": {
			xr: `{` + xr + `, metadata: {name: corner, namespace: team-a}}`, listed: []condition.Held{listed}, want: "pending xstore.example.org/corner -n team-a",
		},
		"What was taken back of one that people edit": {xr: `{` + xr + `, metadata: {name: corner, namespace: team-a, ` + held + `}}`, want: "trace xstore.example.org/corner -n team-a"},
		"What another XR asks for of one": {
			xr: `{` + xr + `, metadata: {name: corner, namespace: team-a, ` + held + `, ` + owner + `}}`, want: "pending xstore.example.org/corner -n team-a",
		},
		"What is only reported": {xr: `{` + xr + `, metadata: {name: corner, namespace: team-a}}`, listed: []condition.Held{passed}, want: "audit -n team-a"},
	} {
		t.Run(reason, func(t *testing.T) {
			u := object(t, tc.xr)

			if _, got, _ := strings.Cut(condition.Summarize(u, condition.Findings{
				Ready: true, Composed: 1, Held: append(tc.listed, condition.HeldOn(u)...),
			}).Message, ". kubectl kausality "); got != tc.want {
				t.Errorf("it is shown by %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAPipelineThatReportsIsNotSettled(t *testing.T) {
	xr := object(t, "{kind: Chain, metadata: {name: long}, status: {size: small, ports: [80], at: {zone: a}, conditions: [{type: Ready, status: 'True'}]}}")

	for desired, want := range map[string]string{
		"{}":                                "",
		"{status: {size: small}}":           "",
		"{status: {size: large}}":           "Chain long is about to report a new status.size",
		"{status: {at: {zone: b}}}":         "Chain long is about to report a new status.at.zone",
		"{status: {new: {zone: b}}}":        "Chain long is about to report a new status.new.zone",
		"{status: {ports: [80.0]}}":         "",
		"{status: {ports: [80, 443]}}":      "Chain long is about to report a new status.ports",
		"{status: {size: null, at: {}}}":    "Chain long is about to report a new status.size",
		"{status: {none: null}}":            "",
		"{status: {conditions: [a]}}":       "",
		"{spec: {size: large}, status: {}}": "",
	} {
		if got := condition.Report(xr, object(t, desired), false).Pending; got != want {
			t.Errorf("Reporting %s: %q, want %q", desired, got, want)
		}
	}
}
