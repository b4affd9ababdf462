// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
)

// cached is what a cache has that is behind.
type cached struct {
	root      *unstructured.Unstructured
	approvals []v1alpha1.ChangeApproval
	held      bool
}

// behind lists ChangeApprovals by such a cache.
type behind struct {
	client.Client
	cached
}

func (b behind) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	out, _ := list.(*v1alpha1.ChangeApprovalList)
	for i := range b.approvals {
		out.Items = append(out.Items, *b.approvals[i].DeepCopy())
	}

	return nil
}

// cache is what a cache has that is not behind.
func (w *world) cache(held bool) cached {
	w.t.Helper()

	list := &v1alpha1.ChangeApprovalList{}
	if err := w.client.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}

	return cached{root: w.get(claimRef()), approvals: list.Items, held: held}
}

// settleBy settles by a cache, and returns when to look again. Writes of what has changed since are refused.
func (w *world) settleBy(c cached) time.Duration {
	w.t.Helper()

	pch := &v1alpha1.PendingChange{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "team-a", Name: "database-db"}, pch); err != nil {
		w.t.Fatal(err)
	}

	pch.Status = v1alpha1.PendingChangeStatus{}
	status := &v1alpha1.PendingChangeStatus{Required: 1, Requesters: []string{"anna"}}

	if c.held {
		status.Changes, status.Total = []v1alpha1.HeldChange{w.entry()}, 1
	}

	s := *w.Settler
	s.Client = behind{Client: w.client, cached: c}
	w.writes = nil

	again, err := s.Settle(w.t.Context(), c.root, pch, status)
	if err != nil && !apierrors.IsConflict(err) {
		w.t.Fatal(err)
	}

	return again
}

// change writes a ChangeApproval.
func (w *world) change(cha *v1alpha1.ChangeApproval, err error) {
	w.t.Helper()

	if err != nil {
		w.t.Fatalf("cannot change ChangeApproval %q: %v", cha.Name, err)
	}
}

func TestByACacheThatIsBehindNothingIsDoneThatCannotBeUndone(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// before is what the cache has, and then what there is.
		before func(w *world) cached
		// carried is how many changes the XR carries approvals of afterwards.
		carried int
		state   v1alpha1.ApprovalState
		field   string
	}{
		"Another of its name was used": {
			reason: "The root remembers it on the API server.",
			before: func(w *world) cached {
				c := w.cache(true)
				w.approveAs("uid-again")
				c.approvals = w.cache(true).approvals

				root := w.get(claimRef())
				root.SetAnnotations(map[string]string{
					v1alpha1.AnnotationApproved: allowance.FormatList([]v1alpha1.ApprovedChange{{Approval: "a", UID: "uid-a", Digest: change}}),
				})
				w.change(&c.approvals[0], w.client.Update(w.t.Context(), root))

				return c
			},
			state: v1alpha1.ApprovalStateSuperseded,
		},
		"It has ended": {
			reason: "Its status on the API server says so.",
			before: func(w *world) cached {
				cha := w.approve()
				c := w.cache(true)
				cha.Status.Changes = []v1alpha1.ChangeDecision{{Digest: change, State: v1alpha1.ApprovalStateExpired, Since: new(metav1.NewTime(w.now))}}
				w.change(cha, w.client.Status().Update(w.t.Context(), cha))

				return c
			},
			state: v1alpha1.ApprovalStateExpired,
		},
		"It is withdrawn": {
			reason: "It is gone on the API server.",
			before: func(w *world) cached {
				cha := w.approve()
				c := w.cache(true)
				w.change(cha, w.client.Delete(w.t.Context(), cha))

				return c
			},
		},
		"It is being deleted": {
			reason: "On the API server.",
			before: func(w *world) cached {
				cha := w.approve()
				cha.Finalizers = []string{metav1.FinalizerDeleteDependents}
				w.change(cha, w.client.Update(w.t.Context(), cha))

				c := w.cache(true)
				w.change(cha, w.client.Delete(w.t.Context(), cha))

				return c
			},
		},
		"The cache does not have what gave an allowance": {
			reason: "It is not withdrawn on the API server.",
			before: func(w *world) cached {
				c := w.cache(true)
				w.approve()
				w.mustSettle()

				return c
			},
			carried: 1, state: v1alpha1.ApprovalStateGranted, field: "spec.forProvider.size",
		},
		"The cache does not have what is held": {
			reason: "The PendingChange lists it on the API server, and its parent holds it there.",
			before: func(w *world) cached {
				w.mustSettle()
				w.approve()

				return w.cache(false)
			},
			state: v1alpha1.ApprovalStateWaiting, field: "spec.forProvider.size",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claim, xr, instance)
			w.report(true)
			w.settleBy(tc.before(w))

			if list := w.allowances(); len(list) != 2*tc.carried || w.state() != tc.state {
				t.Errorf("%s\nstate %q, want %q, allowances %+v", tc.reason, w.state(), tc.state, list)
			}

			recorded := func(cha v1alpha1.ChangeApproval) bool {
				return slices.ContainsFunc(cha.Status.Changes, func(d v1alpha1.ChangeDecision) bool { return d.Field == tc.field })
			}

			if list := w.cache(true).approvals; tc.field != "" && !slices.ContainsFunc(list, recorded) {
				t.Errorf("%s\nrecorded %+v", tc.reason, list)
			}
		})
	}
}

// noted notes what is read, and in which order.
type noted struct {
	client.Reader
	Objects

	log []string
	err error
}

func (n *noted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	n.log = append(n.log, fmt.Sprintf("%T %s", obj, key.Name))

	return n.Reader.Get(ctx, key, obj, opts...)
}

func (n *noted) Read(ctx context.Context, ref v1alpha1.ObjectReference, live bool) (*unstructured.Unstructured, error) {
	n.log = append(n.log, fmt.Sprintf("%s %s live=%t", ref.Kind, ref.Name, live))
	if n.err != nil && live && ref.Kind == "Instance" {
		return nil, n.err
	}

	return n.Objects.Read(ctx, ref, live)
}

// note has all that is read by the Settler noted.
func (w *world) note() *noted {
	n := &noted{Reader: w.client, Objects: w.Settler.Objects}
	w.Settler.Live, w.Settler.Objects = n, n

	return n
}

func (n *noted) expect(t *testing.T, reason string, want ...string) {
	t.Helper()

	if diff := cmp.Diff(want, n.log); diff != "" {
		t.Errorf("%s\nreads, -want, +got:\n%s", reason, diff)
	}

	n.log = nil
}

func TestTheAPIServerIsReadAfterTheParents(t *testing.T) {
	const parent = "XDatabase db-x live=false"

	live := []string{"Database db live=true", "*v1alpha1.PendingChange database-db"}
	w := newWorld(t, claim, xr, instance)
	n := w.note()
	w.report(true)
	w.mustSettle()
	n.expect(t, "Nobody has approved anything.", parent)

	w.approve()
	w.mustSettle()
	n.expect(t, "It is granted by what the API server has.", append([]string{parent}, append(live, "*v1alpha1.ChangeApproval a")...)...)

	if err := w.client.Delete(t.Context(), &v1alpha1.ChangeApproval{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a"}}); err != nil {
		t.Fatal(err)
	}

	w.mustSettle()
	n.expect(t, "What it gave is taken away by what the API server has, once the object is looked at.",
		append([]string{parent}, append(live, "*v1alpha1.ChangeApproval a", "Instance db-1 live=true")...)...)

	w.mustSettle()
	n.expect(t, "That was the end of it.", parent)

	cha := w.approveAs("uid-done")
	cha.Status.Changes = []v1alpha1.ChangeDecision{{Digest: change, State: v1alpha1.ApprovalStateExpired, Since: new(metav1.NewTime(w.now))}}
	w.change(cha, w.client.Status().Update(t.Context(), cha))
	w.mustSettle()
	n.expect(t, "What is final is not looked at again.", parent)
}

func TestAConflictWhileAnObjectIsReadEndsTheAttempt(t *testing.T) {
	w := newWorld(t, claim, xr, instance)
	w.report(true)
	w.approve()
	w.mustSettle()

	w.now, w.writes = w.now.Add(24*time.Hour), nil
	w.note().err = apierrors.NewConflict(schema.GroupResource{Resource: "instances"}, "db-1", nil)

	if _, err := w.settle(); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}

	w.expectWrites("Nothing is written by half of what there is.")
}

// settleChanges settles changes that are held below a parent.
func (w *world) settleChanges(parent v1alpha1.ObjectReference, digests ...string) error {
	w.t.Helper()

	pch := &v1alpha1.PendingChange{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "team-a", Name: "database-db"}, pch); err != nil {
		w.t.Fatal(err)
	}

	status := &v1alpha1.PendingChangeStatus{Required: 1, Total: int32(len(digests))}

	for _, digest := range digests {
		e := w.entry()
		e.Parent, e.Digest = &parent, digest
		status.Changes = append(status.Changes, e)
	}

	_, err := w.Settler.Settle(w.t.Context(), w.get(claimRef()), pch, status)

	return err
}

// TestWhatIsWrittenTwiceIsWrittenByItsNewVersion of a ChangeApproval, and of a root that is a parent itself: of two changes
// one was made, and the other is granted.
func TestWhatIsWrittenTwiceIsWrittenByItsNewVersion(t *testing.T) {
	const other = "sha256:0000000000000000000000000000000000000000000000000000000000000002"

	w := newWorld(t, claim, xr, instance)
	cha := w.decide("uid-a", "")
	cha.Spec.Changes = append(cha.Spec.Changes, other)
	w.change(cha, w.client.Update(t.Context(), cha))

	if err := w.settleChanges(claimRef(), change); err != nil {
		t.Fatal(err)
	}

	list, err := allowance.Parse(w.get(claimRef()))
	if err != nil || len(list) == 0 {
		t.Fatalf("%+v, %v", list, err)
	}

	child := w.get(w.entry().Ref)
	child.SetAnnotations(map[string]string{
		v1alpha1.AnnotationRecord: allowance.FormatRecord(v1alpha1.ObjectRecord{Used: []v1alpha1.Use{allowance.UseOf(list[0])}}),
	})
	w.change(cha, w.client.Update(t.Context(), child))

	if !approval.Used(child, list[0]) {
		t.Fatal("the object does not show the use")
	}

	w.writes = nil

	if err := w.settleChanges(claimRef(), change, other); err != nil {
		t.Fatal(err)
	}

	w.expectWrites("The root and the ChangeApproval are each written twice.",
		"patch status of ChangeApproval a", "patch Database db", "patch Database db", "patch status of ChangeApproval a")
}
