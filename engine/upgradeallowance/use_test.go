// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// Versions of an object; a kind without a generation has none.
const (
	head  = `{apiVersion: v1, kind: RDSInstance, metadata: {name: a, uid: "1", `
	small = head + `generation: 3}, spec: {size: small, other: x}}`
	large = head + `generation: 4}, spec: {size: large, other: x}}`
)

func request(op decision.Operation, user string, old, obj *unstructured.Unstructured, windows ...*v1alpha1.UpgradeAllowance) *decision.Request {
	req := &decision.Request{
		Operation: op, Old: old, New: obj, ParentGone: true, User: policy.User{Name: user}, Basis: decision.Basis{Policies: policy.NewSet(), Now: noon},
		Action: v1alpha1.ActionWarn,
	}

	for _, w := range windows {
		compiled, err := fixture.Windows(*w)
		if err != nil {
			panic(err) // They are written down here.
		}

		req.Upgrades = append(req.Upgrades, compiled...)
	}

	return req
}

func TestAUseIsStoredWhenItsObjectIsNextAsItWasAllowed(t *testing.T) {
	traced := func(obj string, entries string) string {
		return obj[:len(head)] + `annotations: {"kausality.io/trace": "` + entries + `"}, ` + obj[len(head):]
	}
	entry := func(initiator string, generation string) string {
		return `[{field: spec.size, generation: ` + generation + `, initiator: ` + initiator + `, trace: [{kind: RDSInstance, name: a, generation: ` + generation + `, field: spec.size}]}]`
	}

	cases := map[string]struct {
		reason   string
		op       decision.Operation
		old, obj string
		next     string
		gone     bool
		want     upgradeallowance.Answer
	}{
		"Stored": {
			reason: "The next version is what was asked for.",
			op:     decision.OperationUpdate, old: small, obj: large, next: large, want: upgradeallowance.Stored,
		},
		"ChangedAfterUs": {
			reason: "Another write under the window came first, or another webhook made something else of it: then ours is asked again.",
			op:     decision.OperationUpdate, old: small, obj: large,
			next: traced(`{apiVersion: v1, kind: RDSInstance, metadata: {name: a, uid: "1", generation: 4}, spec: {size: larger, other: x}}`,
				entry("UpgradeAllowance/w", "4")), want: upgradeallowance.Lost,
		},
		"StatusWritten": {
			reason: "Another write came first, so this one was not stored on the version it was decided for.",
			op:     decision.OperationUpdate, old: small, obj: large,
			next: head + `generation: 3}, spec: {size: small, other: x}, status: {a: b}}`, want: upgradeallowance.Lost,
		},
		"StatusWrittenUnderAnOlderTrace": {
			reason: "That the window was used before does not count again.",
			op:     decision.OperationUpdate, old: traced(small, entry("UpgradeAllowance/w", "3")), obj: large,
			next: traced(small, entry("UpgradeAllowance/w", "3")), want: upgradeallowance.Lost,
		},
		"AnotherChange": {
			reason: "Nor does what somebody else changed.",
			op:     decision.OperationUpdate, old: small, obj: large,
			next: traced(head+`generation: 4}, spec: {size: tiny, other: x}}`, entry("hans", "4")), want: upgradeallowance.Lost,
		},
		"NoGeneration": {
			reason: "A kind without generations has the same trace each time.",
			op:     decision.OperationUpdate,
			old:    traced(head+`}, spec: {size: small}}`, entry("UpgradeAllowance/w", "1")), obj: head + `}, spec: {size: large}}`,
			next: traced(head+`}, spec: {size: large}}`, entry("UpgradeAllowance/w", "1")), want: upgradeallowance.Stored,
		},
		"MadeAnew": {
			reason: "Another object of the name is another object.",
			op:     decision.OperationUpdate, old: small, obj: large,
			next: `{apiVersion: v1, kind: RDSInstance, metadata: {name: a, uid: "2"}, spec: {size: large}}`, want: upgradeallowance.Lost,
		},
		"LastFinalizer": {
			reason: "What is stored may be the last that there is of the object.",
			op:     decision.OperationUpdate, old: small, obj: large, next: large, gone: true, want: upgradeallowance.Stored,
		},
		"Deleted": {
			reason: "It is gone.",
			op:     decision.OperationDelete, old: small, next: small, gone: true, want: upgradeallowance.Stored,
		},
		"Deleting": {
			reason: "It waits for finalizers.",
			op:     decision.OperationDelete, old: small,
			next: head + `deletionTimestamp: "2024-01-06T16:00:00Z"}}`, want: upgradeallowance.Stored,
		},
		"RecordedFirst": {
			reason: "Who asked is written before the deletion.",
			op:     decision.OperationDelete, old: small, next: large, want: upgradeallowance.NotYet,
		},
		"AnotherOneDeleted": {
			reason: "Another object of the name may go as well.",
			op:     decision.OperationDelete, old: small, next: `{apiVersion: v1, kind: RDSInstance, metadata: {name: a, uid: "2"}}`, gone: true, want: upgradeallowance.Lost,
		},
		"Created": {
			reason: "It is there, by a window.",
			op:     decision.OperationCreate, obj: small,
			next: traced(head+`generation: 1, creationTimestamp: "2024-01-06T16:00:00Z"}}`, `[{field: create, generation: 1, initiator: UpgradeAllowance/w, trace: [{kind: RDSInstance, name: a, generation: 1, field: create}]}]`),
			want: upgradeallowance.Stored,
		},
		"CreatedBefore": {
			reason: "One that a window made before is not made again.",
			op:     decision.OperationCreate, obj: small,
			next: traced(head+`generation: 1, creationTimestamp: "2024-01-06T15:59:50Z"}}`, `[{field: create, generation: 1, initiator: UpgradeAllowance/w, trace: [{kind: RDSInstance, name: a, generation: 1, field: create}]}]`),
			want: upgradeallowance.Lost,
		},
		"CreatedByAnother": {
			reason: "Somebody else was faster.",
			op:     decision.OperationCreate, obj: small, next: head + `generation: 1, creationTimestamp: "2024-01-06T16:00:00Z"}}`, want: upgradeallowance.Lost,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old, obj *unstructured.Unstructured
			if tc.old != "" {
				old = parse(t, tc.old)
			}

			if tc.obj != "" {
				obj = parse(t, tc.obj)
			}

			w := of(nil)
			w.Spec.Allow[0].Mutations = []string{"spec", "create", "delete"}

			req := request(tc.op, "system:serviceaccount:a:b", old, obj, w)
			d := decision.Decide(*req)

			use, ok := upgradeallowance.UseOf(req, &d)
			if !ok || len(use.Windows) != 1 || use.Windows[0] != (upgradeallowance.Key{Name: "w", UID: "1"}) {
				t.Fatalf("%s\nUseOf: %+v, %t of %+v", tc.reason, use, ok, d.Findings)
			}

			if got := use.Judge(parse(t, tc.next), tc.gone); got != tc.want {
				t.Errorf("%s\nJudge: %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestWhatNoWindowAllowsIsNoUse(t *testing.T) {
	deleting := head + `deletionTimestamp: "2024-01-06T15:30:00Z"}}`

	for name, tc := range map[string]struct {
		reason   string
		user     string
		op       decision.Operation
		old, obj string
		action   v1alpha1.ValidationAction
	}{
		"AnotherUser":   {"The window is for somebody else.", "hans", decision.OperationUpdate, small, large, v1alpha1.ActionWarn},
		"Unchanged":     {"Nothing is changed.", "system:serviceaccount:a:b", decision.OperationUpdate, small, small, v1alpha1.ActionWarn},
		"DeletedBefore": {"It is being deleted already.", "system:serviceaccount:a:b", decision.OperationDelete, deleting, "", v1alpha1.ActionWarn},
		"Denied": {
			"Another field is changed too, which is refused.", "system:serviceaccount:a:b", decision.OperationUpdate, small,
			head + `generation: 4}, spec: {size: large}, data: {a: b}}`, v1alpha1.ActionDeny,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var obj *unstructured.Unstructured
			if tc.obj != "" {
				obj = parse(t, tc.obj)
			}

			w := of(nil)
			w.Spec.Allow[0].Mutations = []string{"spec", "delete"}

			req := request(tc.op, tc.user, parse(t, tc.old), obj, w)
			req.Action = tc.action
			d := decision.Decide(*req)

			if use, ok := upgradeallowance.UseOf(req, &d); ok {
				t.Errorf("%s\nUseOf: %+v", tc.reason, use.Windows)
			}
		})
	}
}

func TestAChangeUnderTwoWindowsIsAUseOfBoth(t *testing.T) {
	sizes, others := of(nil), of(nil)
	sizes.Name, sizes.UID, sizes.Spec.Allow[0].Mutations = "sizes", "s", []string{"spec.size"}
	others.Name, others.UID, others.Spec.Allow[0].Mutations = "others", "o", []string{"spec.other", "spec.more"}

	req := request(decision.OperationUpdate, "system:serviceaccount:a:b", parse(t, small),
		parse(t, head+`generation: 4}, spec: {size: large, other: y, more: z}}`), sizes, others)
	d := decision.Decide(*req)

	use, _ := upgradeallowance.UseOf(req, &d)
	if len(use.Windows) != 2 || use.Windows[0].Name != "others" || use.Windows[1].Name != "sizes" {
		t.Errorf("UseOf: %+v", use.Windows)
	}
}
