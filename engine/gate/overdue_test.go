// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

func TestAGateThatIsOpenForTooLongClosesForAWhileIfThePolicySaysSo(t *testing.T) {
	opts := gate.Options{LateInitialize: true, Settle: time.Minute, MaxOpen: time.Hour, CloseOverdue: true}
	u := open(t, map[string]string{"SYNCED": "False"})

	// 1. It closes, and consumes nothing.
	plan := planFor(t, u, opts, opening.Add(time.Hour))
	if plan.Move != gate.CloseUp || !plan.Overdue || len(plan.Allowances) != 1 || plan.Record.Consumed != 3 || !strings.Contains(plan.Why, "oops") {
		t.Fatalf("overdue: %+v", plan)
	}

	u = follow(t, u, plan)

	// 2. It does not open again at once, and the resource is not done.
	plan = planFor(t, u, opts, opening.Add(90*time.Minute))
	if plan.Move != gate.Stay || plan.Again != 30*time.Minute || !strings.Contains(plan.Why, "too long") || !gate.Pending(u) {
		t.Fatalf("resting: %+v", plan)
	}

	// 3. A hand edit is put back, and prolongs nothing.
	edited := u.DeepCopy()
	setPolicies(edited, management.ActionAll)

	plan = planFor(t, edited, opts, opening.Add(90*time.Minute))
	if plan.Move != gate.CloseUp || !cmp.Equal(plan.Record.Actions, []string{"Update"}) || !plan.Record.Since.Time.Equal(opening.Add(time.Hour)) {
		t.Fatalf("put back: %+v", plan)
	}

	// 4. A newer allowance opens it, and so does the older one in time.
	newer := u.DeepCopy()
	annotations := newer.GetAnnotations()
	annotations[v1alpha1.AnnotationAllowances] = "[{relation: External, mutations: [Update], generation: 10, initiator: hans, id: '10.0', source: {type: Policy}}]"
	newer.SetAnnotations(annotations)

	if plan = planFor(t, newer, opts, opening.Add(61*time.Minute)); plan.Move != gate.OpenUp {
		t.Errorf("newer: %+v", plan)
	}

	plan = planFor(t, u, opts, opening.Add(2*time.Hour))
	if plan.Move != gate.OpenUp || !cmp.Equal(plan.Record.Actions, []string{"Update"}) {
		t.Errorf("rested: %+v", plan)
	}

	// 5. Then it lands, and is over.
	u = follow(t, u, plan)
	u = synced(t, u, u.GetGeneration())

	if plan = planFor(t, u, opts, opening.Add(2*time.Hour+time.Minute)); plan.Move != gate.CloseUp || plan.Record.Consumed != 8 || len(plan.Record.Actions) > 0 || len(plan.Allowances) > 0 {
		t.Errorf("landed: %+v", plan)
	}
}

func TestAGateThatIsOpenForTooLongStaysWhereClosingDoesHarm(t *testing.T) {
	for name, values := range map[string]map[string]string{
		"Initial": {"GATE": initial, "POLICIES": "[Observe, LateInitialize, Create, Update]", "READY": "False"},
		"Unasked": {"GATE": isOpen, "POLICIES": updateSet, "ALLOWANCES": update, "SYNCED": "False"},
	} {
		opts := gate.Options{LateInitialize: true, Settle: time.Minute, MaxOpen: time.Hour, CloseOverdue: name != "Unasked"}

		plan := planFor(t, situation(t, values), opts, opening.Add(2*time.Hour))
		if plan.Move != gate.Stay || !plan.Overdue {
			t.Errorf("%s: %+v", name, plan)
		}
	}
}

func TestADeleteThatIsWaitingDoesNotEndTheRest(t *testing.T) {
	opts := gate.Options{LateInitialize: true, Settle: time.Minute, MaxOpen: time.Hour, CloseOverdue: true}
	u := open(t, map[string]string{
		"SYNCED":     "False",
		"ALLOWANCES": `kausality.io/allowances: "[{relation: External, mutations: [Update, Delete], generation: 8, initiator: hans, id: '8.0', source: {type: Policy}}]"`,
	})

	u = follow(t, u, planFor(t, u, opts, opening.Add(time.Hour)))
	if plan := planFor(t, u, opts, opening.Add(time.Hour)); plan.Move != gate.Stay || plan.Again != time.Hour {
		t.Errorf("resting: %+v", plan)
	}
}
