// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// takenBack is a resource whose size was changed under allowance 8, and changed
// back under allowance 10 before the first was there. Its provider has seen both,
// and shows the size from before.
func takenBack(t *testing.T, conds string) *unstructured.Unstructured {
	t.Helper()

	u := conditions(t, open(t, map[string]string{
		"ALLOWANCES": `kausality.io/allowances: "[{relation: External, mutations: [Update], generation: 10, initiator: hans, id: '10.0', source: {type: Policy}}]"`,
	}), conds)
	u.SetGeneration(10)

	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationTrace] = "[{field: spec.forProvider.size, generation: 10, initiator: hans}]"
	u.SetAnnotations(annotations)

	return u
}

func TestAChangeThatIsTakenBackWhileItIsMadeKeepsTheGateOpen(t *testing.T) {
	const (
		synced  = `{type: Synced, status: "True", observedGeneration: 10, lastTransitionTime: "2026-01-01T00:01:00Z"}`
		ready   = `{type: Ready, status: "True"}`
		lastOp  = `{type: LastAsyncOperation, status: "True", lastTransitionTime: "2025-12-31T00:00:00Z"}`
		doneOp  = `{type: AsyncOperation, status: "True", reason: Finished, lastTransitionTime: "2025-12-31T00:00:00Z"}`
		between = ", "
	)

	opts := gate.Options{LateInitialize: true, Settle: time.Minute}
	now := opening.Add(2 * time.Minute)

	for name, tc := range map[string]struct {
		reason, conds string
		waits         bool
	}{
		"InTheBackground": {"The first change may be under way still, and nothing tells.", synced + between + ready + between + lastOp, true},
		"OlderProvider":   {"So it may where the provider tells, and has not yet.", synced + between + ready + between + doneOp, true},
		"AtOnce":          {"A provider that waits for its changes has made it before it saw that it was taken back.", synced + between + ready, false},
	} {
		t.Run(name, func(t *testing.T) {
			// 1. It is taken back.
			u := takenBack(t, "["+tc.conds+"]")

			plan := planFor(t, u, opts, now)
			if closed := plan.Move == gate.CloseUp; closed == tc.waits {
				t.Fatalf("%s\nPlanFor: %+v", tc.reason, plan)
			}

			if !tc.waits {
				return
			}

			// 2. It is waited for.
			u = follow(t, u, plan)

			plan = planFor(t, u, opts, now.Add(20*time.Second))
			if plan.Move != gate.Stay || plan.Again != 40*time.Second || !strings.Contains(plan.Why, "settle") {
				t.Fatalf("%s\nSettling: %+v", tc.reason, plan)
			}

			// 3. And then both have landed.
			plan = planFor(t, u, opts, now.Add(time.Minute))
			if plan.Move != gate.CloseUp || plan.Record.Consumed != 10 || len(plan.Allowances) != 0 {
				t.Errorf("%s\nSettled: %+v", tc.reason, plan)
			}
		})
	}
}
