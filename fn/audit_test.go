// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
)

// TestModeAuditGatesNothing composes a managed resource in mode Audit, and then
// in mode Hold again.
func TestModeAuditGatesNothing(t *testing.T) {
	const (
		input  = "mode: Audit"
		policy = "    kausality.io/desired-policies: '{\"v\":1,\"policies\":[\"*\"]}'\n"
		audit  = "    kausality.io/desired-policies: '{\"v\":1,\"policies\":[\"*\"],\"mode\":\"Audit\"}'\n"
		record = "    kausality.io/gate: \"{v: 1, state: Closed, generation: 7, since: 2026-01-01T00:00:00Z}\"\n"
		closed = "  managementPolicies: [Observe, LateInitialize]\n"
		all    = "  managementPolicies: ['*']\n"
		mode   = "    kausality.io/desired-policies: '{\"v\":1,\"mode\":\"Audit\"}'\n"
		bare   = "\napiVersion: kubernetes.crossplane.io/v1alpha2\nkind: Object\nmetadata:\n  annotations:\n" + mode +
			"spec:\n  forProvider: {size: small, engine: postgres}\n"
		gated = "\napiVersion: kubernetes.crossplane.io/v1alpha2\nkind: Object\nmetadata:\n  annotations:\n    kausality.io/allowances: |\n      []\n" +
			audit + "spec:\n  forProvider: {size: small, engine: postgres}\n"
	)

	free := strings.NewReplacer(policy, mode, record, "", closed, all, "    kausality.io/allowances: |\n      []\n", "").Replace(observedObject)
	opened := strings.NewReplacer(
		policy, audit, record, "    kausality.io/gate: \"v: 1\\nstate: Ungated\\naudit: true\\n\"\n", closed, all,
	).Replace(observedObject)

	cases := map[string]struct {
		reason, xr, observed, desired, input string
		// want is applied of the resource, nothing where it is to be deleted.
		want, condition string
	}{
		"Created": {
			reason: "What is not allowed is made as its Composition wishes, and says that it is not to be gated.",
			xr:     steadyXR, desired: sized("small", "postgres"), input: input,
			want: bare, condition: "in progress, 1 change would be held",
		},
		"Free": {
			reason: "A managed resource without a gate gets none.",
			xr:     steadyXR, observed: free, desired: sized("small", "postgres"), input: input,
			want: bare, condition: "settled",
		},
		"Changed": {
			reason: "What is not allowed is applied to it, and counts as done.",
			xr:     steadyXR, observed: free, desired: sized("small", "mysql"), input: input,
			want:      strings.Replace(bare, "postgres", "mysql", 1),
			condition: "settled, 1 change would be held: engine of Object db-obj (postgres → mysql); ",
		},
		"Deleted": {
			reason: "And it is deleted in one step.",
			xr:     steadyXR, observed: free, input: input,
			condition: "in progress, 1 change would be held",
		},
		"Gated": {
			reason: "One with a gate says that it is to be taken away.",
			xr:     steadyXR, observed: observedObject, desired: sized("small", "postgres"), input: input,
			want: strings.Replace(gated, "spec:\n", "spec:\n"+closed, 1), condition: "in progress",
		},
		"GatedDeleted": {
			reason: "It is deleted as soon as the gate is: before, that would orphan what is outside.",
			xr:     steadyXR, observed: observedObject, input: input,
			want:      strings.Replace(gated, "spec:\n", "spec:\n"+closed, 1),
			condition: "in progress, 1 change would be held",
		},
		"Opened": {
			reason: "That its gate is gone is no change that has to land.",
			xr:     steadyXR, observed: opened, desired: sized("small", "postgres"), input: input,
			want: strings.Replace(gated, "spec:\n", "spec:\n"+all, 1), condition: "settled",
		},
		"OpenedDeleted": {
			reason: "It is deleted then.",
			xr:     steadyXR, observed: opened, input: input,
			condition: "in progress, 1 change would be held",
		},
		"HoldAgain": {
			reason: "What was without a gate while the function only reported says that this is over.",
			xr:     steadyXR, observed: opened, desired: sized("small", "postgres"),
			want:      strings.NewReplacer(audit, policy, "spec:\n", "spec:\n"+all).Replace(gated),
			condition: "in progress",
		},
		"FreeHoldAgain": {
			reason: "So does one that never had a gate.",
			xr:     steadyXR, observed: free, desired: sized("small", "postgres"),
			want:      strings.NewReplacer(mode, policy, "spec:\n", "spec:\n"+all).Replace(bare),
			condition: "in progress",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, call(t, tc.xr, tc.observed, tc.desired, tc.input))

			want, got := resources(t, tc.want), withoutWishes(t, rsp.GetDesired().GetResources())
			for _, r := range got {
				r.Ready = 0
			}

			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" && (tc.want != "" || len(got) > 0) {
				t.Errorf("%s\ndesired, -want, +got:\n%s", tc.reason, diff)
			}

			if got := rsp.GetConditions()[0].GetMessage(); !strings.HasPrefix(got, "generation 12: "+tc.condition) {
				t.Errorf("%s\ncondition: %q, want %q", tc.reason, got, tc.condition)
			}
		})
	}
}
