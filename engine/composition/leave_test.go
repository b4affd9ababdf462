// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// TestWhatTheGateAloneHasIsNotAppliedAgain has the gate's two fields with the gate, with Crossplane or with both. Applied
// with the value that is stored, one would get a second owner until the next move, which is a write of the object.
func TestWhatTheGateAloneHasIsNotAppliedAgain(t *testing.T) {
	const (
		policies   = `"f:spec": {"f:managementPolicies": {}}`
		allowances = `"f:metadata": {"f:annotations": {"f:kausality.io/allowances": {}}}`
		external   = "    kausality.io/allowances: |\n      [{relation: External, mutations: [Update], generation: 7, initiator: hans, id: '7.0', source: {type: Policy, field: spec.size}, trace: [{kind: XDatabase, name: db, generation: 12, field: spec.size}]}]\n"
	)

	for name, tc := range map[string]struct {
		gate    string // Fields of the field manager kausality-gate.
		others  []string
		desired []string
		left    bool // Whether both fields are left out.
	}{
		"the gate has both":            {gate: policies + ", " + allowances, others: []string{`        "f:managementPolicies": {}` + "\n", ""}, left: true},
		"Crossplane has them":          {gate: `"f:metadata": {"f:annotations": {"f:kausality.io/gate": {}}}`},
		"nobody else applied them":     {others: []string{`        "f:managementPolicies": {}` + "\n", ""}},
		"a change gives another":       {gate: policies + ", " + allowances, others: []string{`        "f:managementPolicies": {}` + "\n", ""}, desired: []string{"small", "large"}},
		"the gate does not apply them": {others: []string{`        "f:managementPolicies": {}` + "\n", "", "  managedFields:\n", "  managedFields:\n  - {manager: kausality-gate, operation: Update, fieldsV1: {" + policies + ", " + allowances + "}}\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			observed := edit(t, observedRDS, "    kausality.io/gate:", external+"    kausality.io/gate:")
			observed = edit(t, observed, tc.others...)

			if tc.gate != "" {
				observed = edit(t, observed, "  managedFields:\n", "  managedFields:\n  - {manager: kausality-gate, operation: Apply, fieldsV1: {"+tc.gate+"}}\n")
			}

			got := composition.Decide(requestFor(t, allowing("spec.forProvider", "Update"), observed, edit(t, desiredRDS, tc.desired...)))
			if len(got.Held) > 0 || got.Desired == nil {
				t.Fatalf("held %v, desired %v", fields(got.Held), got.Desired)
			}

			have, stored := resource.Annotation(got.Desired, v1alpha1.AnnotationAllowances), resource.Annotation(object(t, observed), v1alpha1.AnnotationAllowances)
			_, policiesToo := resource.Value(got.Desired.Object, "spec", "managementPolicies")

			if leftOut := have == ""; leftOut != tc.left {
				t.Errorf("allowances %q, left out: want %v", have, tc.left)
			}

			if changed := len(tc.desired) > 0; changed != (have != "" && have != stored) {
				t.Errorf("allowances %q, stored %q", have, stored)
			}

			if gateHas := tc.left || len(tc.desired) > 0; policiesToo == gateHas {
				t.Errorf("spec.managementPolicies desired: %v, the gate has it: %v", policiesToo, gateHas)
			}
		})
	}
}
