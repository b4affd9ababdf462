// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

const asked = `    kausality.io/asked: |
      generation: 7
      user: system:serviceaccount:crossplane-system:crossplane
      since: "2026-01-01T00:00:00Z"
      spec: {forProvider: {instanceClass: large, zone: early}}
      users: {spec.forProvider.zone: anna}
`

// policies are of one AllowancePolicy about an XDatabase.
func policies(t *testing.T, allow ...v1alpha1.Permission) *policy.Set {
	t.Helper()

	p := v1alpha1.AllowancePolicy{}
	p.Name = "size"
	p.Spec.Match = v1alpha1.Match{APIGroup: "example.org", Kind: "XDatabase", Fields: []string{"spec.size"}}
	p.Spec.Allow = allow

	compiled, errs := policy.Compile(&p)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	return policy.NewSet(compiled)
}

func TestWhatTheGateKeptIsReportedThoughTheSpecIsAsWished(t *testing.T) {
	xr := edit(t, steadyXR, "ALLOWANCES", "[]")
	observed := edit(t, observedRDS, "  ownerReferences", asked+"  ownerReferences")

	class := v1alpha1.Permission{APIGroup: "rds.aws.upbound.io", Kind: "RDSInstance", Mutations: []string{"spec.forProvider.instanceClass"}}
	update := v1alpha1.Permission{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}}

	const said = "RDSInstance db-rds: spec.forProvider.instanceClass is small, and stays large outside: it was stored by " +
		"system:serviceaccount:crossplane-system:crossplane at 2026-01-01T00:00:00Z, and the gate did not let it out: take it back, or "

	for name, tc := range map[string]struct {
		reason            string
		observed, desired string
		policies          *policy.Set
		mode              v1alpha1.Mode
		want              []string
		text              string
	}{
		"NoPolicy": {
			reason: "What lets nothing out is to be written.", observed: observed, desired: desiredRDS,
			want: []string{"spec.forProvider.instanceClass", "spec.forProvider.zone"},
			text: said + "add an AllowancePolicy about XDatabase that allows RDSInstance spec.forProvider.instanceClass and External Update, and have it set back and set again",
		},
		"Policy": {
			reason: "A policy lets it out.", observed: observed, desired: desiredRDS, policies: policies(t, class, update),
			want: []string{"spec.forProvider.instanceClass", "spec.forProvider.zone"},
			text: said + `have it set back and set again: policy "size" lets it out once a change of spec.size is allowed`,
		},
		"WithoutExternal": {
			reason: "It lets the resource alone be changed.", observed: observed, desired: desiredRDS, policies: policies(t, class),
			want: []string{"spec.forProvider.instanceClass", "spec.forProvider.zone"},
			text: said + `let policy "size" allow External Update too, and have it set back and set again`,
		},
		"PutBack": {
			reason: "What the pipeline puts back itself needs no word.", observed: observed,
			desired: edit(t, desiredRDS, "instanceClass: small", "instanceClass: large"),
			want:    []string{"spec.forProvider.zone"},
		},
		"Audit": {
			reason: "In mode Audit nothing is kept.", observed: observed, desired: desiredRDS, mode: v1alpha1.ModeAudit,
		},
		"Ungated": {
			reason: "Without a gate nothing is kept.", observed: edit(t, observed, "state: Closed", "state: Ungated"), desired: desiredRDS,
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, xr, tc.observed, tc.desired)
			req.Policies = tc.policies

			if tc.mode != "" {
				req.Mode = tc.mode
			}

			held := slices.DeleteFunc(composition.Decide(req).Held, func(h composition.Held) bool { return !h.Inside })
			if diff := cmp.Diff(tc.want, fields(held)); diff != "" {
				t.Fatalf("%s\nHeld inside, -want, +got:\n%s", tc.reason, diff)
			}

			if tc.text != "" && held[0].String() != tc.text {
				t.Errorf("%s\nit says %q, want %q", tc.reason, held[0], tc.text)
			}

			for _, h := range held {
				if h.Field == "spec.forProvider.zone" && !strings.Contains(h.Reason, "stored by anna at") {
					t.Errorf("%s\nit says %q, and anna stored it", tc.reason, h)
				}
			}
		})
	}
}
