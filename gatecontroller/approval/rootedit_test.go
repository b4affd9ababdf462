// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// editedRoot is a root that is none of Crossplane's, of which anna has edited the size.
const editedRoot = `
apiVersion: example.org/v1
kind: Database
metadata:
  namespace: team-a
  name: db
  uid: claim
  generation: 2
  annotations: {kausality.io/held: "- {field: spec.size, from: small, cause: {type: Edit, user: anna, since: '2026-04-01T00:00:00Z'}, stored: {}}"}
spec: {size: huge}
status: {observedGeneration: 2}`

// judging decides by one policy, and calls a function before that.
type judging struct {
	*testing.T

	before func()
}

func (j judging) Decide(_ context.Context, req request.Request) (decision.Decision, error) {
	var p v1alpha1.AllowancePolicy
	if err := yaml.UnmarshalStrict([]byte(`{metadata: {name: size}, spec: {match: {apiGroup: example.org, kind: Database, fields: [spec.size]},
		subjects: [{kind: User, name: hans, mayInitiate: true}], allow: [{kind: ConfigMap, mutations: [data]}]}}`), &p); err != nil {
		j.Fatal(err)
	}

	req.Basis.Policies, _ = policy.NewCache().Set([]v1alpha1.AllowancePolicy{p})

	if j.before != nil {
		j.before()
	}

	return decision.Decide(req), nil
}

// settleEdit settles what the root says that is edited.
func (w *world) settleEdit() error {
	w.t.Helper()

	return w.settleEditOf(w.get(claimRef()))
}

func (w *world) settleEditOf(root *unstructured.Unstructured) error {
	w.t.Helper()

	pch := &v1alpha1.PendingChange{Spec: v1alpha1.PendingChangeSpec{ObjectRef: pending.RefTo(root)}}
	pch.Namespace, pch.Name, pch.CreationTimestamp = "team-a", "database-db", metav1.NewTime(w.now)

	status := pending.Status(pending.Input{
		Root: root, Objects: []pending.Object{{Unstructured: root}}, Now: w.now,
		Previous: v1alpha1.PendingChangeStatus{Refused: []v1alpha1.RefusedChange{{
			Digest: change, Field: "create", Ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}, Message: "no", Last: metav1.NewTime(w.now),
			ParentGeneration: 2,
		}}},
	})

	_, err := w.Settler.Settle(w.t.Context(), root, pch, &status)

	return err
}

// approveEdit has berta approve the edit.
func (w *world) approveEdit() {
	w.t.Helper()

	edits, err := input.RecordedEdits(w.get(claimRef()))
	if err != nil || len(edits) != 1 {
		w.t.Fatalf("%+v: %v", edits, err)
	}

	cha := w.approve()
	cha.Spec.Changes = []string{edits[0].Digest}

	if err := w.client.Update(w.t.Context(), cha); err != nil {
		w.t.Fatal(err)
	}
}

// edit says what there is of the edit, and of what its approval gives.
func (w *world) edit() string {
	w.t.Helper()

	root := w.get(claimRef())
	list, err := allowance.Parse(root)
	approved, err2 := allowance.ParseApproved(root)

	if err != nil || err2 != nil {
		w.t.Fatal(err, err2)
	}

	out := make([]string, 0, len(list))
	for _, a := range list {
		out = append(out, fmt.Sprintf("%s %s of %s", a.Kind, a.Mutation, a.Initiator))
	}

	return fmt.Sprintf("edited %t, gives %s, approved %d", resource.Annotation(root, v1alpha1.AnnotationHeld) != "", strings.Join(out, ", "), len(approved))
}

func TestAnEditIsLetThroughInOneWrite(t *testing.T) {
	w := newWorld(t, editedRoot)
	w.Settler.Judge = judging{T: t}

	settle := func() {
		t.Helper()

		if err := w.settleEdit(); err != nil {
			t.Fatal(err)
		}
	}

	settle()
	w.expectWrites("Nobody has approved anything.")

	w.approveEdit()
	settle()
	w.expectWrites("What is approved is recorded, and then let through.", "patch status of ChangeApproval a", "patch Database db")

	if diff := cmp.Diff("edited false, gives ConfigMap data of berta, approved 1", w.edit()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	settle()
	w.expectWrites("It is made.", "patch status of ChangeApproval a")

	if w.state() != v1alpha1.ApprovalStateApplied {
		t.Errorf("it is %s", w.state())
	}

	want := `Normal KausalityApproved of Database: spec.size of Database db is approved by berta, by ChangeApproval "a": INFRA-1`
	if len(w.events) != 1 || w.events[0] != want {
		t.Errorf("events %q", w.events)
	}

	settle()
	w.expectWrites("That is the end.")
}

func TestWhereverItIsStoppedAnEditIsLetThroughOnce(t *testing.T) {
	for stop := 1; stop <= 3; stop++ {
		w := newWorld(t, editedRoot)
		w.Settler.Judge = judging{T: t}
		w.approveEdit()
		w.failAt = stop

		for range 3 {
			if err := w.settleEdit(); err != nil && !errors.Is(err, fixture.ErrRefused) {
				t.Fatal(err)
			}
		}

		if diff := cmp.Diff("edited false, gives ConfigMap data of berta, approved 1", w.edit()); diff != "" || w.state() != v1alpha1.ApprovalStateApplied {
			t.Errorf("stopped at write %d: %s, -want, +got:\n%s", stop, w.state(), diff)
		}
	}
}

func TestAnotherEditIsNotLetThrough(t *testing.T) {
	w := newWorld(t, editedRoot)
	w.approveEdit()

	// It is edited once more while it is decided about.
	w.Settler.Judge = judging{T: t, before: func() {
		root := w.get(claimRef())
		root.Object["spec"] = map[string]any{"size": "giant"}

		if err := w.client.Update(t.Context(), root); err != nil {
			t.Fatal(err)
		}
	}}

	if err := w.settleEdit(); err == nil {
		t.Error("a conflict is none")
	}

	w.Settler.Judge = judging{T: t}
	if err := w.settleEdit(); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff("edited true, gives , approved 0", w.edit()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestAnEditThatIsRevertedIsNotLetThroughByACacheThatIsBehind(t *testing.T) {
	w := newWorld(t, editedRoot)
	w.Settler.Judge = judging{T: t}
	w.approveEdit()

	before := w.get(claimRef())
	after := before.DeepCopy()
	after.SetAnnotations(nil)

	if err := w.client.Update(t.Context(), after); err != nil {
		t.Fatal(err)
	}

	if err := w.settleEditOf(before); err != nil {
		t.Fatal(err)
	}

	w.expectWrites("The API server has no edit.", "patch status of ChangeApproval a")
}
