// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	stdcmp "cmp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// TestACompositionThatAsksForOtherActions would have the external object left behind when the XR is deleted, or changed and
// deleted though it was only to be observed.
func TestACompositionThatAsksForOtherActions(t *testing.T) {
	steady := edit(t, steadyXR, "ALLOWANCES", "[]")
	orphaning := edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [Observe, Create, Update], ")
	all := []string{"Observe", "LateInitialize", "Create", "Update", "Delete"}

	for name, tc := range map[string]struct {
		reason string
		xr     string
		// observed is [observedRDS] where there is none.
		observed string
		desired  string
		mode     v1alpha1.Mode
		held     []string
		asks     []string
	}{
		"Unasked": {reason: "That is not allowed.", xr: steady, desired: orphaning, held: []string{"spec.managementPolicies"}, asks: all},
		"Asked":   {reason: "Somebody did.", xr: allowing("spec.managementPolicies", "Update"), desired: orphaning, asks: []string{"Observe", "Create", "Update"}},
		"Audit":   {reason: "It is only reported.", xr: steady, desired: orphaning, mode: v1alpha1.ModeAudit, held: []string{"spec.managementPolicies"}, asks: []string{"Observe", "Create", "Update"}},
		"HoldAgain": {
			reason: "Where it is held the mode is the new one all the same.", xr: steady, observed: edit(t, observedRDS, `["*"]}`, `["*"],"mode":"Audit"}`),
			desired: orphaning, held: []string{"spec.managementPolicies"}, asks: all,
		},
		"Paused":   {reason: "A paused one is not orphaned.", xr: steady, desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [], "), asks: []string{}},
		"Resumed":  {reason: "What it was before nobody knows.", xr: steady, observed: edit(t, observedRDS, `"policies":["*"]`, `"policies":[]`), desired: orphaning, asks: []string{"Observe", "Create", "Update"}},
		"Observed": {reason: "It was only to be observed before.", xr: steady, observed: edit(t, observedRDS, `"policies":["*"]`, `"policies":[],"before":["Observe"]`), desired: desiredRDS, held: []string{"spec.managementPolicies"}, asks: []string{}},
		"GoesOn":   {reason: "It is again what it was.", xr: steady, observed: edit(t, observedRDS, `"policies":["*"]`, `"policies":[],"before":["Observe"]`), desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [Observe], "), asks: []string{"Observe"}},
		"Wider":    {reason: "This one was only to be observed.", xr: steady, observed: edit(t, observedRDS, `"policies":["*"]`, `"policies":["Observe"]`), desired: desiredRDS, held: []string{"spec.managementPolicies"}, asks: []string{"Observe"}},
		"Allowed":  {reason: "Somebody asked for that.", xr: allowing("spec.managementPolicies", "Update"), observed: edit(t, observedRDS, `"policies":["*"]`, `"policies":["Observe"]`), desired: desiredRDS, asks: all},
		"Less":     {reason: "Delete stays, and Update goes.", xr: steady, desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [Observe, Delete], "), held: []string{"spec.managementPolicies"}, asks: all},
		"Late":     {reason: "To initialise fields changes nothing outside.", xr: steady, desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [Observe, Create, Update, Delete], "), asks: []string{"Observe", "Create", "Update", "Delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestFor(t, tc.xr, stdcmp.Or(tc.observed, observedRDS), tc.desired)
			req.Mode = tc.mode
			out := composition.Decide(req)

			if diff := cmp.Diff(tc.held, fields(out.Held)); diff != "" || len(out.Problems) > 0 {
				t.Fatalf("%s\nheld, -want, +got:\n%s\nproblems %v", tc.reason, diff, out.Problems)
			}

			if got := management.Audited(out.Desired); got != (tc.mode == v1alpha1.ModeAudit) {
				t.Errorf("%s\nmode Audit: %t", tc.reason, got)
			}

			got, err := management.Desired(out.Desired)
			if diff := cmp.Diff(tc.asks, got); diff != "" || err != nil {
				t.Errorf("%s\nasked for, -want, +got:\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}
