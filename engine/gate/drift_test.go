// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// drifting is a Bag whose gate closed at generation 7 with what is to be filled in, and of which somebody changed c since.
const drifting = `
apiVersion: bags.example.org/v1
kind: Bag
metadata:
  name: bag
  uid: bag
  generation: GENERATION
  annotations:
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kausality.io/gate: '{"v":1,"state":"Closed","generation":7,"since":"2026-01-01T00:00:00Z","consumed":3,RECORD}'
    kausality.io/trace: 'TRACE'
    kausality.io/allowances: 'ALLOWANCES'
spec:
  managementPolicies: [Observe, LateInitialize]
  forProvider: {a: "1", b: "2", c: "3", zones: [x, y], password: hidden}
status:
  atProvider: OUTSIDE
  conditions:
  - {type: Synced, status: "True", observedGeneration: GENERATION, lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Ready, status: "True"}
`

// compared is what a record says of the fields that were compared.
var compared = `"compared":"` + comparedIn("a", "b", "c", "zones", "password", "list") + `"`

// comparedIn are hashes of fields of spec.forProvider.
func comparedIn(fields ...string) string {
	raw := make([]byte, 0, 2*len(fields))

	for _, field := range fields {
		sum := sha256.Sum256([]byte("spec.forProvider." + field))
		raw = append(raw, sum[:2]...)
	}

	return base64.StdEncoding.EncodeToString(raw)
}

// driftOf fills it in.
func driftOf(t *testing.T, pairs ...string) *unstructured.Unstructured {
	t.Helper()

	text := strings.NewReplacer(pairs...).Replace(drifting)

	return fixture.Parse(t, strings.NewReplacer(
		"RECORD", compared, "TRACE", "[]", "ALLOWANCES", "[]", "GENERATION", "7", "OUTSIDE", `{a: "1", b: "2", c: "9", zones: [y, x], more: "1"}`,
	).Replace(text))
}

const (
	// changeOfB is an allowed change of b, which waits for the gate.
	changeOfB = `[{field: spec.forProvider.b, generation: 8, initiator: hans}]`
	allowsB   = `[{relation: External, mutations: [Update], generation: 8, initiator: hans, id: "8.0", policy: p, source: {type: Policy, name: p, field: spec.forProvider.b}}]`
)

// fullTrace has no room for more.
func fullTrace() string {
	out := make([]string, 0, v1alpha1.MaxTraceEntries)
	for i := range v1alpha1.MaxTraceEntries {
		out = append(out, fmt.Sprintf("{field: spec.forProvider.b%d, generation: 8, initiator: hans}", i))
	}

	return "[" + strings.Join(out, ", ") + "]"
}

func TestWhatDriftIs(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		pairs  []string
		want   string
	}{
		"Drift":       {reason: "Somebody has changed it outside; an order is none, and what the provider adds neither.", want: "spec.forProvider.c"},
		"Two":         {reason: "And more.", pairs: []string{"OUTSIDE", `{a: "5", b: "2", c: "9"}`}, want: "spec.forProvider.a spec.forProvider.c"},
		"Differed":    {reason: "It differed when the gate closed.", pairs: []string{"RECORD", compared + `,"differs":["spec.forProvider.c"]`}},
		"Above":       {reason: "All of it may differ.", pairs: []string{"RECORD", compared + `,"differs":["spec.forProvider"]`}},
		"NotCompared": {reason: "The gate closed before there was drift.", pairs: []string{"RECORD", `"windows":[]`}},
		"Existed":     {reason: "What existed differs anyway.", pairs: []string{"RECORD", compared + `,"existed":true`}},
		"NotShown":    {reason: "Nothing is known of it.", pairs: []string{"OUTSIDE", "{}"}},
		"Asked":       {reason: "A change of it waits.", pairs: []string{"GENERATION", "8", "TRACE", strings.Replace(changeOfB, ".b", ".c", 1)}},
		"AskedBefore": {reason: "That one was applied.", pairs: []string{"TRACE", `[{field: spec.forProvider.c, generation: 5, initiator: hans}]`}, want: "spec.forProvider.c"},
		"Open": {
			reason: "Nobody knows what of it is on its way.", pairs: []string{`"Closed"`, `"Open","actions":["Update"]`},
		},
		"OpenForDelete": {
			reason: "That changes nothing.", pairs: []string{`"Closed"`, `"Open","actions":["Delete"]`}, want: "spec.forProvider.c",
		},
		"NotYetShown":  {reason: "The provider has come to show it.", pairs: []string{"RECORD", `"compared":"` + comparedIn("a", "b") + `"`}},
		"NeverUpdated": {reason: "Nobody could revert it.", pairs: []string{`"policies":["*"]`, `"policies":["Observe","Create","Delete"]`}},
		"ListAdded": {
			reason: "An element that is asked for makes another list of it.",
			pairs:  []string{"GENERATION", "8", "TRACE", `[{field: "spec.forProvider.zones[2]", generation: 8, initiator: hans}]`, "OUTSIDE", `{a: "1", c: "3", zones: [x]}`},
		},
		"ListMoved": {
			reason: "And one in a list that is shown in another order moves others.",
			pairs:  []string{"GENERATION", "8", "TRACE", `[{field: "spec.forProvider.zones[1]", generation: 8, initiator: hans}]`, "OUTSIDE", `{a: "1", c: "3", zones: [z, x]}`},
		},
		"ListByHand": {reason: "Nobody asked for that.", pairs: []string{"OUTSIDE", `{a: "1", c: "3", zones: [x]}`}, want: "spec.forProvider.zones"},
		"TraceFull": {
			reason: "Nobody knows all that was asked for.", pairs: []string{"GENERATION", "8", "TRACE", fullTrace()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := driftOf(t, tc.pairs...)

			list := managed.DriftEntries(u, nil)

			fields := make([]string, 0, len(list))
			for _, e := range list {
				fields = append(fields, e.Field)

				if e.Digest == "" || e.Cause.Type != v1alpha1.CauseDrift || len(e.Follows) != 1 {
					t.Errorf("%s\ncannot be approved: %+v", tc.reason, e)
				}
			}

			if got := strings.Join(fields, " "); got != tc.want {
				t.Errorf("%s\ndrift %q, want %q", tc.reason, got, tc.want)
			}

			trimmed := u.DeepCopy()
			gate.Trim(trimmed, nil)

			if a, b := len(managed.DriftEntries(trimmed, nil)), len(fields); a != b {
				t.Errorf("%s\ntrimmed: %d fields, want %d", tc.reason, a, b)
			}
		})
	}
}

func TestACredentialThatDriftsIsNotShown(t *testing.T) {
	one, other := managed.DriftEntries(driftOf(t, "OUTSIDE", "{password: a}"), nil), managed.DriftEntries(driftOf(t, "OUTSIDE", "{password: b}"), nil)
	if len(one) != 1 || len(other) != 1 {
		t.Fatalf("drift %v, %v", one, other)
	}

	if !one[0].Masked || strings.Contains(one[0].From+one[0].To, "hidden") || one[0].From == "a" || one[0].Digest != other[0].Digest {
		t.Errorf("shows %+v", one[0])
	}
}

func TestAGateDoesNotOpenOverDrift(t *testing.T) {
	digest := managed.DriftEntries(driftOf(t, "GENERATION", "8", "TRACE", changeOfB), nil)[0].Digest
	approved := strings.TrimSuffix(allowsB, "]") + `, {kind: Bag, apiGroup: bags.example.org, mutation: spec.forProvider.c, generation: 8, initiator: eva, id: "8.0", digest: "` +
		digest + `", approval: u, source: {type: Approval, name: cha}}, {relation: External, mutations: [Update], generation: 8, initiator: eva, id: "8.0", digest: "` +
		digest + `", approval: u, source: {type: Approval, name: cha}}]`
	window := strings.NewReplacer("type: Policy, name: p, field: spec.forProvider.b", "type: "+string(v1alpha1.SourceWindow)+", name: w", "policy: p, ", "").Replace(allowsB)

	for name, tc := range map[string]struct {
		reason string
		pairs  []string
		opts   gate.Options
		move   gate.Move
		why    string
	}{
		"Drift":    {reason: "The update of b would revert c.", move: gate.Stay, why: "changed outside in spec.forProvider.c"},
		"Reverted": {reason: "Nothing else would be changed.", pairs: []string{"OUTSIDE", `{a: "1", b: "0", c: "3"}`}, move: gate.OpenUp},
		"Itself":   {reason: "What is asked for is b.", pairs: []string{"OUTSIDE", `{a: "1", b: "0"}`}, move: gate.OpenUp},
		"Differed": {reason: "It differed before, and no gate waited for that.", pairs: []string{"RECORD", compared + `,"differs":["spec.forProvider.c"]`}, move: gate.OpenUp},
		"Turned off": {
			reason: "Nobody looks for drift of the kind.", opts: gate.Options{WithoutDrift: management.AllKinds()}, move: gate.OpenUp,
		},
		"Whole":    {reason: "All of the spec is asked for.", pairs: []string{"field: spec.forProvider.b", "field: spec.forProvider"}, move: gate.OpenUp},
		"Approved": {reason: "Eva has approved that it is reverted.", pairs: []string{"ALLOWANCES", approved}, move: gate.OpenUp},
		"ApprovedOther": {
			reason: "She has seen another value.", pairs: []string{"ALLOWANCES", approved, "OUTSIDE", `{a: "1", b: "0", c: "10"}`}, move: gate.Stay, why: "spec.forProvider.c",
		},
		"List": {
			reason: "An element that is asked for moves others.", move: gate.OpenUp,
			pairs: []string{"OUTSIDE", `{a: "1", b: "2", c: "3", zones: [y]}`, "field: spec.forProvider.b", "field: 'spec.forProvider.zones[0]'"},
		},
		"Window": {reason: "A window is there to revert it.", pairs: []string{"ALLOWANCES", window}, opts: gate.Options{}, move: gate.OpenUp},
	} {
		t.Run(name, func(t *testing.T) {
			pairs := append(slices.Clone(tc.pairs), "GENERATION", "8", "ALLOWANCES", allowsB, "TRACE", changeOfB)

			u := driftOf(t, pairs...)
			if name == "List" {
				u = driftOf(t, append(slices.Clone(tc.pairs[:2]), "GENERATION", "8", "ALLOWANCES", strings.Replace(allowsB, "spec.forProvider.b", `"spec.forProvider.zones[0]"`, 1),
					"TRACE", strings.Replace(changeOfB, "spec.forProvider.b", `"spec.forProvider.zones[0]"`, 1))...)
			}

			if name == "Whole" {
				u = driftOf(t, "GENERATION", "8", "ALLOWANCES", strings.Replace(allowsB, ".b", "", 1), "TRACE", strings.Replace(changeOfB, ".b", "", 1))
			}

			tc.opts.LateInitialize = true
			if name == "Window" {
				tc.opts.Windows = []v1alpha1.UpgradeAllowance{windowFor(t)}
			}

			plan, err := gate.PlanFor(u, tc.opts, time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC))
			if err != nil || plan.Move != tc.move || !strings.Contains(plan.Why, tc.why) {
				t.Errorf("%s\n%s: %s, %v; want %s: %s", tc.reason, plan.Move, plan.Why, err, tc.move, tc.why)
			}
		})
	}
}

// windowFor is a window in force that opens gates by itself.
func windowFor(t *testing.T) v1alpha1.UpgradeAllowance {
	t.Helper()

	w := v1alpha1.UpgradeAllowance{}
	w.Name, w.UID, w.Spec.Selector = "w", "w", &metav1.LabelSelector{}
	w.Spec.ValidUntil.Time = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	w.Spec.Allow = []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Mutations: []string{management.ActionUpdate}}}

	return w
}
