// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

func TestTheGrantOfADeletionThatDidNotHappenIsTakenBack(t *testing.T) {
	t.Parallel()

	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.org/v1", "kind": "Store",
		"metadata": map[string]any{"name": "corner", "uid": "st", "annotations": map[string]any{
			v1alpha1.AnnotationAllowances: `[{kind: Object, mutation: delete, generation: 2, initiator: hans, id: '2.0', source: {type: Deletion}, trace: [{kind: Store, name: corner, generation: 2, field: delete}]},
				{kind: Object, mutation: spec, generation: 3, initiator: hans, id: '3.0', source: {type: Policy, field: spec.size}, trace: [{kind: Store, name: corner, generation: 3, field: spec.size}]}]`,
			v1alpha1.AnnotationTrace: `[{field: delete, generation: 2, initiator: hans, trace: [{kind: Store, name: corner, generation: 2, field: delete}]}]`,
		}},
	}}

	now := time.Now()
	c := fake.NewClientBuilder().WithObjects(u).Build()
	p := &Parents{Writer: object.Writer{Client: c}, Unused: NewUnused(func() time.Time { return now })}

	live := func() *unstructured.Unstructured {
		t.Helper()

		out := object.New(u.GroupVersionKind())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), out); err != nil {
			t.Fatal(err)
		}

		return out
	}

	// It may be about to be deleted.
	for _, wait := range []time.Duration{0, 20 * time.Second} {
		now = now.Add(wait)

		res, err := p.reconcile(t.Context(), live())
		if diff := cmp.Diff(unusedAfter-wait, res.RequeueAfter); err != nil || diff != "" {
			t.Errorf("after %s: %v, -want, +got:\n%s", wait, err, diff)
		}
	}

	if list, err := allowance.Parse(live()); err != nil || len(list) != 2 {
		t.Fatalf("it carries %d allowances (%v), want 2", len(list), err)
	}

	// A manager that is started meanwhile waits anew, and no longer.
	p.Unused = NewUnused(func() time.Time { return now })

	if res, err := p.reconcile(t.Context(), live()); err != nil || res.RequeueAfter != unusedAfter {
		t.Errorf("started anew: %v, again after %s", err, res.RequeueAfter)
	}

	now = now.Add(unusedAfter)

	if _, err := p.reconcile(t.Context(), live()); err != nil {
		t.Fatal(err)
	}

	after := live()
	if list, err := allowance.Parse(after); err != nil || len(list) != 1 || list[0].Mutation != "spec" {
		t.Errorf("it carries %+v (%v), want that of the change alone", list, err)
	}

	if text, there := after.GetAnnotations()[v1alpha1.AnnotationTrace]; there {
		t.Errorf("its trace is %q, and it was not deleted", text)
	}
}
