// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestTheConditionOfAnXRSaysThatTheFunctionDoesNotRun(t *testing.T) {
	xr := `
apiVersion: example.org/v1
kind: Store
metadata: {name: corner, namespace: a, generation: 4}
spec: {crossplane: {compositionRevisionRef: {name: stores-1}}}
status: {conditions: [{type: Kausality, status: "True", reason: Allowed, message: "generation 4: settled, request 2"}, ` + fixture.State(v1alpha1.PhaseSettled, 4, 2) + "]}"

	const want = "generation 4: CompositionRevision stores-1 has no step that runs function-kausality, and nothing is held. " +
		"Add the step, or see docs/install.md"

	for name, tc := range map[string]struct {
		reason, xr string
		revisions  map[string]bool
		want       string
	}{
		"NotRun":  {"The revision does not run it.", xr, map[string]bool{"stores-1": false}, want},
		"Runs":    {"It does.", xr, map[string]bool{"stores-1": true}, ""},
		"Unknown": {"Nobody knows.", xr, map[string]bool{"stores-0": false}, ""},
		"Never":   {"It never ran.", edit(t, xr, "type: Kausality", "type: Ready"), map[string]bool{"stores-1": false}, ""},
		"Again":   {"It says so.", edit(t, xr, "generation 4: settled, request 2", want), map[string]bool{"stores-1": false}, ""},
		"Claim":   {"A Claim shows its XR's condition.", edit(t, xr, "{crossplane: {compositionRevisionRef: {name: stores-1}}}", "{compositionRevisionRef: {name: stores-1}, resourceRef: {apiVersion: example.org/v1, kind: XStore, name: x}}"), map[string]bool{"stores-1": false}, ""},
		"Failing": {"A run fails, and takes it away.", edit(t, xr, `status: "True", reason: Allowed, message: "generation 4: settled, request 2"`, `status: Unknown, reason: FatalError`), map[string]bool{"stores-1": false}, ""},
		"Failed": {
			"A run has failed, and none does now.", edit(t, xr, `{type: Kausality, status: "True", reason: Allowed, message: "generation 4: settled, request 2"}`,
				`{type: Kausality, status: Unknown, reason: FatalError}, {type: Synced, status: "True"}`), map[string]bool{"stores-1": false}, want,
		},
		"FailedForAll": {
			"That run has taken away how far it was, too.", edit(t, xr, `{type: Kausality, status: "True", reason: Allowed, message: "generation 4: settled, request 2"}, `+fixture.State(v1alpha1.PhaseSettled, 4, 2),
				`{type: Kausality, status: Unknown, reason: FatalError}, {type: KausalityState, status: Unknown, reason: FatalError}, {type: Synced, status: "True"}`),
			map[string]bool{"stores-1": false},
			want,
		},
		"Ran": {
			"It runs under a name that is not known.", edit(t, xr, `"settled":{"generation":4,"request":2}}`, `"settled":{"generation":4,"request":2}},"revision":"stores-0","ran":"stores-1"`),
			map[string]bool{"stores-1": false},
			"",
		},
		"RanAndHeldNothing": {
			"It does, and says so in less.", edit(t, xr, `"settled":{"generation":4,"request":2}}`, `"settled":{"generation":4,"request":2}},"revision":"stores-1"`),
			map[string]bool{"stores-1": false},
			"",
		},
		"RanBefore": {
			"It ran at the revision before.", edit(t, xr, `"settled":{"generation":4,"request":2}}`, `"settled":{"generation":4,"request":2}},"revision":"stores-1","ran":"stores-0"`),
			map[string]bool{"stores-1": false},
			want,
		},
		"Revision": {"It is another one.", edit(t, edit(t, xr, "generation 4: settled, request 2", want), "name: stores-1", "name: stores-2"), map[string]bool{"stores-2": false}, edit(t, want, "stores-1", "stores-2")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := condition.NotRun(object(t, tc.xr), tc.revisions); got != tc.want {
				t.Errorf("%s\nNotRun: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWhereTheFunctionRanItIsNotSaidNotTo has the record of its own run say so, whether something is held that a new revision of
// the Composition asks for, or not.
func TestWhereTheFunctionRanItIsNotSaidNotTo(t *testing.T) {
	const before = `
apiVersion: example.org/v1
kind: Store
metadata: {name: corner, namespace: a, generation: 4}
spec: {crossplane: {compositionRevisionRef: {name: stores-2}}}
status: {conditions: [{type: Kausality, status: "True", reason: Allowed, message: "generation 4: settled"},
  {type: KausalityState, status: "True", message: '{"v":1,"progress":{"phase":"Settled","generation":4},"revision":"stores-1"}'}]}
`

	revisions := map[string]bool{"stores-1": true, "stores-2": false}
	held := []condition.Held{{Change: v1alpha1.HeldChange{Field: "spec.forProvider.size", From: "small", To: "large"}}}

	for name, held := range map[string][]condition.Held{"Nothing": nil, "Held": held} {
		t.Run(name, func(t *testing.T) {
			xr := object(t, before)
			if condition.NotRun(xr, revisions) == "" {
				t.Fatal("it has not run yet at the revision that the XR names")
			}

			said, _ := resource.List(xr.Object, "status", "conditions")[1].(map[string]any)
			said["message"] = resource.FormatState(condition.List(xr, &condition.Status{Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled}}, nil, held, nil, false))

			if got := condition.NotRun(xr, revisions); got != "" {
				t.Errorf("with the record %s it says %q", said["message"], got)
			}
		})
	}
}
