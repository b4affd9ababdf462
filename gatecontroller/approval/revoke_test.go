// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

var errWebhook = errors.New("conversion webhook for Database failed: connection refused")

// broken does not read what may be asked of the API server alone: the root, and the PendingChange.
type broken struct{ *noted }

func (b broken) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*v1alpha1.PendingChange); ok {
		return errWebhook
	}

	return b.noted.Get(ctx, key, obj, opts...)
}

func (b broken) Read(ctx context.Context, ref v1alpha1.ObjectReference, live bool) (*unstructured.Unstructured, error) {
	if live && ref.Kind == "Database" {
		return nil, errWebhook
	}

	return b.noted.Read(ctx, ref, live)
}

// vote makes a ChangeApproval of the change, of a user.
func (w *world) vote(name, user string, decision v1alpha1.ApprovalDecision) {
	w.t.Helper()

	cha := &v1alpha1.ChangeApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(w.now)},
		Spec: v1alpha1.ChangeApprovalSpec{
			PendingChange: "database-db", Decision: decision, Changes: []string{change}, Approver: &v1alpha1.Approver{Username: user},
		},
	}
	w.change(cha, w.client.Create(w.t.Context(), cha))
}

// TestWhatIsRevokedIsTakenAwayThoughTheRootCannotBeRead revokes what a parent carries while the API server fails to read what only a
// grant is confirmed by.
func TestWhatIsRevokedIsTakenAwayThoughTheRootCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(*world)
		want v1alpha1.ApprovalState
	}{
		"rejected":       {func(w *world) { w.vote("r", "eva", v1alpha1.DecisionReject) }, v1alpha1.ApprovalStateRejected},
		"expired":        {func(w *world) { w.now = w.now.Add(25 * time.Hour) }, v1alpha1.ApprovalStateExpired},
		"lost the right": {func(w *world) { w.refused = []string{"berta"} }, v1alpha1.ApprovalStateNotAllowed},
		"used":           {func(w *world) { w.report(false, w.use(v1alpha1.ApprovalUsed)) }, v1alpha1.ApprovalStateApplied},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claim, xr, instance)
			w.report(true)
			w.approve()
			w.mustSettle()
			w.report(true, w.use(v1alpha1.ApprovalWaiting))
			w.mustSettle()

			if len(w.allowances()) == 0 {
				t.Fatal("nothing is carried")
			}

			b := broken{w.note()}
			w.Settler.Live, w.Settler.Objects = b, b

			tc.then(w)

			if _, err := w.settle(); err != nil || len(w.allowances()) > 0 || w.state() != tc.want {
				t.Errorf("%v: %d allowances, state %q, want none and %q", err, len(w.allowances()), w.state(), tc.want)
			}
		})
	}
}

// TestNothingIsConfirmedWhereNothingIsGranted counts what is read from the API server once all is as it is to be.
func TestNothingIsConfirmedWhereNothingIsGranted(t *testing.T) {
	const many = 20

	reject := func(w *world) {
		for i := range many {
			w.vote(fmt.Sprintf("r%d", i), fmt.Sprintf("user-%d", i), v1alpha1.DecisionReject)
		}
	}

	for name, prepare := range map[string]func(*world){
		"granted": func(w *world) {
			w.approve()
			w.mustSettle()
			w.report(true, w.use(v1alpha1.ApprovalWaiting))
		},
		"not allowed":      func(w *world) { w.refused = []string{"berta"}; w.approve() },
		"rejected by many": reject,
		"rejected, and not held": func(w *world) {
			reject(w)
			w.mustSettle()
			w.report(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claim, xr, instance)
			w.report(true)
			prepare(w)
			w.mustSettle()

			n := w.note()
			w.mustSettle()
			n.expect(t, "Nothing is read from the API server.", "XDatabase db-x live=false")
		})
	}

	t.Run("left over", func(t *testing.T) {
		w := newWorld(t, claim, xr, instance)
		w.report(true)
		reject(w)
		w.mustSettle()

		pch := &v1alpha1.PendingChange{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "database-db"}}
		if err := w.client.Delete(t.Context(), pch); err != nil {
			t.Fatal(err)
		}

		w.report(false)

		n := w.note()
		left := Leftovers{Settler: w.Settler}

		if _, err := left.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "r0"}}); err != nil {
			t.Fatal(err)
		}

		n.expect(t, "Whether its PendingChange is gone is asked, and nothing else.", "*v1alpha1.PendingChange database-db", "XDatabase db-x live=false")
	})
}

// TestAnApprovalIsNotFinalByWhatIsRecordedOfOtherChanges has the root remember that an approval was used of which the status tells of
// another change.
func TestAnApprovalIsNotFinalByWhatIsRecordedOfOtherChanges(t *testing.T) {
	w := newWorld(t, claim, xr, instance)
	w.report(true)

	cha := w.approve()
	cha.Status.Changes = []v1alpha1.ChangeDecision{{Digest: "sha256:other", State: v1alpha1.ApprovalStateSuperseded}}
	w.change(cha, w.client.Status().Update(t.Context(), cha))

	c := w.cache(true) // By this the root remembers nothing.
	root := w.get(claimRef())
	used := []v1alpha1.ApprovedChange{{Approval: "a", UID: "uid-a", Digest: change}}
	root.SetAnnotations(map[string]string{v1alpha1.AnnotationApproved: allowance.FormatList(used)})

	if err := w.client.Update(t.Context(), root); err != nil {
		t.Fatal(err)
	}

	w.settleBy(c)

	if len(w.allowances()) > 0 || w.state() != v1alpha1.ApprovalStateApplied {
		t.Errorf("%d allowances, state %q, want none and Applied", len(w.allowances()), w.state())
	}
}
