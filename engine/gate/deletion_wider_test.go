// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// TestADeletionOpensForDeleteAloneThoughItsPolicyAllowsMore has one policy about
// what destroys: its allowances have Create, too, for what is made anew.
func TestADeletionOpensForDeleteAloneThoughItsPolicyAllowsMore(t *testing.T) {
	trace := `id: '8.0', source: {type: Deletion, from: '3.0'}, trace: [{kind: Tenant, name: t, generation: 3, field: delete}, {kind: Database, name: t, generation: 8, field: delete}]`
	allowances := `kausality.io/allowances: "[{relation: External, mutations: [Create, Update, Delete], generation: 8, initiator: hans, ` + trace + `}]"`

	opened := planFor(t, situation(t, map[string]string{"GATE": closed, "ALLOWANCES": allowances}), gate.Options{LateInitialize: true}, opening)
	if diff := cmp.Diff([]string{"Observe", "Delete"}, opened.Policies); diff != "" || opened.Move != gate.OpenUp {
		t.Errorf("%s, -want, +got:\n%s", opened.Move, diff)
	}

	// The provider is content: it waits until the garbage collector has deleted it.
	waits := planFor(t, situation(t, map[string]string{
		"GATE":     `kausality.io/gate: "{v: 1, state: Open, actions: [Delete], generation: 9, since: 2026-01-01T00:00:00Z, consumed: 3, allowances: [{relation: External, mutations: [Delete], generation: 8, initiator: hans, ` + trace + `}]}"`,
		"POLICIES": deleteSet, "ALLOWANCES": allowances,
	}), gate.Options{LateInitialize: true}, opening.Add(time.Hour))
	if waits.Move != gate.Stay {
		t.Errorf("the gate is to stay open until the resource is gone: %s, %s", waits.Move, waits.Why)
	}
}

// TestADeletionWaitsForNoUpdateThatFails has an update fail for ever, and then the
// resource's parent be deleted, with a grant.
func TestADeletionWaitsForNoUpdateThatFails(t *testing.T) {
	granted := `{relation: External, mutations: [Delete], generation: 8, initiator: hans, id: '8.0', source: {type: Deletion, from: '3.0'}, trace: [{kind: Tenant, name: t, generation: 3, field: delete}, {kind: View, name: t, generation: 8, field: delete}]}`
	changed := `{relation: External, mutations: [Update], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}`

	plan := planFor(t, situation(t, map[string]string{
		"GATE": isOpen, "POLICIES": updateSet, "SYNCED": "False", "ALLOWANCES": `kausality.io/allowances: "[` + changed + ", " + granted + `]"`,
	}), gate.Options{LateInitialize: true}, opening)
	if diff := cmp.Diff([]string{"Observe", "Delete"}, plan.Policies); diff != "" || plan.Move != gate.OpenUp {
		t.Fatalf("%s (%s), -want, +got:\n%s", plan.Move, plan.Why, diff)
	}

	// What was asked for before is not forgotten: the deletion may be withdrawn.
	u := situation(t, map[string]string{"POLICIES": deleteSet, "SYNCED": "False", "ALLOWANCES": `kausality.io/allowances: "[` + changed + `]"`})

	record, err := allowance.FormatGate(plan.Record)
	if err != nil {
		t.Fatal(err)
	}

	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationGate] = record
	u.SetAnnotations(annotations)

	plan = planFor(t, u, gate.Options{LateInitialize: true}, opening)
	if diff := cmp.Diff([]string{"Observe", "LateInitialize", "Update"}, plan.Policies); diff != "" || plan.Move != gate.OpenUp {
		t.Errorf("%s (%s), -want, +got:\n%s", plan.Move, plan.Why, diff)
	}
}
