// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
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

func requestFor(op request.Operation, user string, old, obj *unstructured.Unstructured, windows ...*v1alpha1.UpgradeAllowance) *request.Request {
	req := &request.Request{
		Operation: op, Old: old, New: obj, ParentGone: true, User: policy.User{Name: user}, Basis: request.Basis{Policies: policy.NewSet(), Now: noon},
		Action: v1alpha1.ActionWarn,
	}

	for _, w := range windows {
		compiled, err := fixture.Windows(*w)
		if err != nil {
			panic(err) // They are written down here.
		}

		req.Basis.Upgrades = append(req.Basis.Upgrades, compiled...)
	}

	return req
}

func TestAWindowIsUsedByWhatItAllows(t *testing.T) {
	for name, tc := range map[string]struct {
		op       request.Operation
		old, obj string
	}{
		"Create": {op: request.OperationCreate, obj: small},
		"Update": {op: request.OperationUpdate, old: small, obj: large},
		"Delete": {op: request.OperationDelete, old: small},
	} {
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

			req := requestFor(tc.op, "system:serviceaccount:a:b", old, obj, w)
			d := decision.Decide(*req)

			if got := upgradeallowance.UsedBy(req, &d); !slices.Equal(got, []string{"w"}) {
				t.Errorf("UsedBy: %v of %+v", got, d.Findings)
			}
		})
	}
}

func TestWhatNoWindowAllowsIsNoUse(t *testing.T) {
	deleting := head + `deletionTimestamp: "2024-01-06T15:30:00Z"}}`

	for name, tc := range map[string]struct {
		reason   string
		user     string
		op       request.Operation
		old, obj string
		action   v1alpha1.ValidationAction
	}{
		"AnotherUser":   {"The window is for somebody else.", "hans", request.OperationUpdate, small, large, v1alpha1.ActionWarn},
		"Unchanged":     {"Nothing is changed.", "system:serviceaccount:a:b", request.OperationUpdate, small, small, v1alpha1.ActionWarn},
		"DeletedBefore": {"It is being deleted already.", "system:serviceaccount:a:b", request.OperationDelete, deleting, "", v1alpha1.ActionWarn},
		"Denied": {
			"Another field is changed too, which is refused.", "system:serviceaccount:a:b", request.OperationUpdate, small,
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

			req := requestFor(tc.op, tc.user, parse(t, tc.old), obj, w)
			req.Action = tc.action
			d := decision.Decide(*req)

			if got := upgradeallowance.UsedBy(req, &d); len(got) > 0 {
				t.Errorf("%s\nUsedBy: %v", tc.reason, got)
			}
		})
	}
}

func TestAChangeUnderTwoWindowsIsAUseOfBoth(t *testing.T) {
	sizes, others := of(nil), of(nil)
	sizes.Name, sizes.UID, sizes.Spec.Allow[0].Mutations = "sizes", "s", []string{"spec.size"}
	others.Name, others.UID, others.Spec.Allow[0].Mutations = "others", "o", []string{"spec.other", "spec.more"}

	req := requestFor(request.OperationUpdate, "system:serviceaccount:a:b", parse(t, small),
		parse(t, head+`generation: 4}, spec: {size: large, other: y, more: z}}`), sizes, others)
	d := decision.Decide(*req)

	if got := upgradeallowance.UsedBy(req, &d); !slices.Equal(got, []string{"others", "sizes"}) {
		t.Errorf("UsedBy: %v", got)
	}
}
