// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	claim = `
apiVersion: example.org/v1
kind: Database
metadata: {namespace: team-a, name: db, uid: claim, generation: 2}
spec: {resourceRef: {apiVersion: example.org/v1, kind: XDatabase, name: db-x}}`
	xr = `
apiVersion: example.org/v1
kind: XDatabase
metadata: {name: db-x, uid: xr, generation: 5}
spec: {claimRef: {apiVersion: example.org/v1, kind: Database, namespace: team-a, name: db}}`
	instance = `
apiVersion: rds.example.org/v1
kind: Instance
metadata: {name: db-1, uid: child, generation: 1}`
	change = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
)

// world is a small cluster with a Settler, whose cache is never behind.
type world struct {
	Settler *Settler

	t      *testing.T
	client client.WithWatch
	// writes are those to the API server, as VERB KIND NAME; failAt is which of them is refused,
	// counted from 1, before is called before each.
	writes []string
	failAt int
	before func(write string)
	// refused are users who may not decide, and unread kinds that may not be read.
	refused, unread []string
	events          []string
	now             time.Time
}

func newWorld(t *testing.T, texts ...string) *world {
	t.Helper()

	w := &world{t: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Database"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "XDatabase"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "rds.example.org", Version: "v1", Kind: "Instance"}, meta.RESTScopeRoot)

	for _, kind := range []string{"PendingChange", "ChangeApproval"} {
		mapper.Add(v1alpha1.GroupVersion().WithKind(kind), meta.RESTScopeNamespace)
	}

	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
		WithStatusSubresource(&v1alpha1.PendingChange{}, &v1alpha1.ChangeApproval{}).
		WithIndex(&v1alpha1.ChangeApproval{}, IndexedField, Named).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if slices.Contains(w.unread, obj.GetObjectKind().GroupVersionKind().Kind) {
					return apierrors.NewForbidden(schema.GroupResource{}, key.Name, nil)
				}

				return c.Get(ctx, key, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := w.write("patch", obj); err != nil {
					return err
				}

				return c.Patch(ctx, obj, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := w.write("patch "+sub+" of", obj); err != nil {
					return err
				}

				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				if err := w.write("delete", obj); err != nil {
					return err
				}

				return c.Delete(ctx, obj, opts...)
			},
		})
	for _, text := range texts {
		b = b.WithObjects(fixture.Parse(t, text))
	}

	pch := &v1alpha1.PendingChange{Spec: v1alpha1.PendingChangeSpec{ObjectRef: v1alpha1.ObjectReference{
		APIVersion: "example.org/v1", Kind: "Database", Namespace: "team-a", Name: "db", UID: "claim",
	}}}
	pch.Namespace, pch.Name, pch.CreationTimestamp = "team-a", "database-db", metav1.NewTime(w.now.Add(-time.Hour))

	w.client = b.WithObjects(pch).Build()
	w.Settler = &Settler{
		Client: w.client, Live: w.client, Rights: w, Events: w, Now: func() time.Time { return w.now },
		Objects: Reader{Cache: w.client, Live: w.client, Mapper: mapper, Known: func(_ context.Context, gk schema.GroupKind) (schema.GroupVersionKind, bool) {
			return gk.WithVersion("v1"), gk.Group == "example.org"
		}},
	}

	return w
}

// write notes a write; an error where it is to be refused.
func (w *world) write(verb string, obj client.Object) error {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1alpha1.")
	}

	text := fmt.Sprintf("%s %s %s", verb, kind, obj.GetName())
	if w.before != nil {
		w.before(text)
	}

	w.writes = append(w.writes, text)
	if len(w.writes) == w.failAt {
		return fixture.ErrRefused
	}

	return nil
}

// MayDecide implements Rights.
func (w *world) MayDecide(
	_ context.Context, approver v1alpha1.Approver, _ v1alpha1.ApprovalDecision, _ v1alpha1.HeldChange, namespace string,
) (bool, string, error) {
	if namespace != "team-a" {
		w.t.Errorf("asked for namespace %q", namespace)
	}

	return !slices.Contains(w.refused, approver.Username), "bind the role", nil
}

// Eventf implements events.EventRecorder.
func (w *world) Eventf(regarding, _ runtime.Object, typ, reason, _, note string, args ...any) {
	u, _ := regarding.(*unstructured.Unstructured)
	w.events = append(w.events, fmt.Sprintf("%s %s of %s: %s", typ, reason, u.GetKind(), fmt.Sprintf(note, args...)))
}

func (w *world) get(ref v1alpha1.ObjectReference) *unstructured.Unstructured {
	w.t.Helper()

	u := &unstructured.Unstructured{}
	u.SetAPIVersion(ref.APIVersion)
	u.SetKind(ref.Kind)

	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u); err != nil {
		w.t.Fatal(err)
	}

	return u
}

func claimRef() v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Database", Namespace: "team-a", Name: "db", UID: "claim"}
}

func xrRef() v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "XDatabase", Name: "db-x", UID: "xr"}
}

// approve makes the ChangeApproval a of the change.
func (w *world) approve() *v1alpha1.ChangeApproval {
	w.t.Helper()

	return w.approveAs("uid-a")
}

func (w *world) approveAs(uid types.UID) *v1alpha1.ChangeApproval {
	w.t.Helper()

	return w.decide(uid, "")
}

func (w *world) decide(uid types.UID, decision v1alpha1.ApprovalDecision) *v1alpha1.ChangeApproval {
	w.t.Helper()

	cha := &v1alpha1.ChangeApproval{Spec: v1alpha1.ChangeApprovalSpec{
		PendingChange: "database-db", Decision: decision, Changes: []string{change}, Reason: "INFRA-1", Approver: &v1alpha1.Approver{Username: "berta"},
	}}
	cha.Namespace, cha.Name, cha.UID, cha.CreationTimestamp = "team-a", "a", uid, metav1.NewTime(w.now)

	if err := w.client.Create(w.t.Context(), cha); err != nil {
		w.t.Fatal(err)
	}

	return cha
}

// report writes the XR's list: what is held, and how far allowances are.
func (w *world) report(held bool, uses ...v1alpha1.ApprovalUse) {
	w.t.Helper()

	list := v1alpha1.State{Approvals: uses}
	if held {
		list.Changes = []v1alpha1.HeldChange{w.entry()}
	}

	u := w.get(xrRef())
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": v1alpha1.ConditionState, "status": "False", "reason": "Held", "message": resource.FormatState(list),
	}}}

	if err := w.client.Update(w.t.Context(), u); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) use(state v1alpha1.ApprovalUseState) v1alpha1.ApprovalUse {
	return v1alpha1.ApprovalUse{Approval: "uid-a", Digest: change, State: state}
}

func (w *world) entry() v1alpha1.HeldChange {
	parent := xrRef()

	return v1alpha1.HeldChange{
		Ref:    v1alpha1.ObjectReference{APIVersion: "rds.example.org/v1", Kind: "Instance", Name: "db-1", UID: "child"},
		Parent: &parent, Field: "spec.forProvider.size", Digest: change, Follows: []string{"Update"},
	}
}

// settle settles what the XR says that is held, and writes the status, as the controller of
// PendingChanges does.
func (w *world) settle() (*v1alpha1.PendingChangeStatus, error) {
	w.t.Helper()

	pch := &v1alpha1.PendingChange{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "team-a", Name: "database-db"}, pch); err != nil {
		w.t.Fatal(err)
	}

	finished := metav1.NewTime(w.now)
	status := &v1alpha1.PendingChangeStatus{Required: 1, Requesters: []string{"anna"}, FinishedAt: &finished, Conditions: pch.Status.Conditions}

	if list, known := resource.StateOf(w.get(xrRef())); known && len(list.Changes) > 0 {
		status.Changes, status.Total, status.FinishedAt = []v1alpha1.HeldChange{w.entry()}, 1, nil
	}

	if _, err := w.Settler.Settle(w.t.Context(), w.get(claimRef()), pch, status); err != nil {
		return nil, err
	}

	pch.Status = *status
	if err := w.client.Status().Update(w.t.Context(), pch); err != nil {
		w.t.Fatal(err)
	}

	return status, nil
}

func (w *world) mustSettle() *v1alpha1.PendingChangeStatus {
	w.t.Helper()

	status, err := w.settle()
	if err != nil {
		w.t.Fatal(err)
	}

	return status
}

// state is the recorded state of the ChangeApproval; empty where it is gone or has none.
func (w *world) state() v1alpha1.ApprovalState {
	w.t.Helper()

	cha := &v1alpha1.ChangeApproval{}

	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "team-a", Name: "a"}, cha)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}

	if len(cha.Status.Changes) == 0 {
		return ""
	}

	return cha.Status.Changes[0].State
}

func (w *world) allowances() []v1alpha1.Allowance {
	w.t.Helper()

	list, err := allowance.Parse(w.get(xrRef()))
	if err != nil {
		w.t.Fatal(err)
	}

	return list
}

func (w *world) approved() []v1alpha1.ApprovedChange {
	w.t.Helper()

	list, err := allowance.ParseApproved(w.get(claimRef()))
	if err != nil {
		w.t.Fatal(err)
	}

	return list
}

func (w *world) expectWrites(reason string, want ...string) {
	w.t.Helper()

	if diff := cmp.Diff(want, w.writes); diff != "" {
		w.t.Errorf("%s\nwrites, -want, +got:\n%s", reason, diff)
	}

	w.writes = nil
}

func TestAnApprovalIsCarriedOut(t *testing.T) {
	w := newWorld(t, claim, xr, instance)
	w.report(true)

	if s := w.mustSettle(); meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionApproved).Reason != v1alpha1.ReasonWaiting {
		t.Errorf("conditions %+v", s.Conditions)
	}

	w.expectWrites("Nobody has approved anything.")

	// 1. It is approved.
	cha := w.approve()
	status := w.mustSettle()
	w.expectWrites("It is recorded before it is given.", "patch status of ChangeApproval a", "patch XDatabase db-x")

	if diff := cmp.Diff(approval.Allowances(w.entry(), cha, 5, nil), w.allowances()); diff != "" {
		t.Errorf("allowances, -want, +got:\n%s", diff)
	}

	if len(status.Approvals) != 1 || status.Approvals[0].State != v1alpha1.ApprovalStateGranted || w.state() != v1alpha1.ApprovalStateGranted {
		t.Errorf("approvals %+v", status.Approvals)
	}

	w.mustSettle()
	w.expectWrites("The same is written once.")

	// 2. It is let through, and made.
	w.report(false, w.use(v1alpha1.ApprovalApplying))

	if s := w.mustSettle(); s.FinishedAt != nil {
		t.Error("it is finished while it is being made")
	}

	w.expectWrites("The message is another one.", "patch status of ChangeApproval a")
	w.report(false, w.use(v1alpha1.ApprovalUsed))

	if s := w.mustSettle(); s.FinishedAt == nil || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionApplied) {
		t.Errorf("it is not finished: %+v", s)
	}

	w.expectWrites("It is remembered before it is taken away.", "patch Database db", "patch XDatabase db-x", "patch status of ChangeApproval a")

	if diff := cmp.Diff([]v1alpha1.ApprovedChange{{Approval: "a", UID: "uid-a", Digest: change}}, w.approved()); diff != "" {
		t.Errorf("remembered, -want, +got:\n%s", diff)
	}

	if list := w.allowances(); len(list) != 0 || w.state() != v1alpha1.ApprovalStateApplied {
		t.Errorf("allowances %+v of one that is %s", list, w.state())
	}

	want := []string{
		`Normal KausalityApproved of XDatabase: spec.forProvider.size of Instance db-1 is approved by berta, by ChangeApproval "a": INFRA-1`,
		`Normal KausalityApproved of Database: spec.forProvider.size of Instance db-1 is approved by berta, by ChangeApproval "a": INFRA-1`,
		`Normal KausalityApprovalUsed of XDatabase: spec.forProvider.size of Instance db-1 was applied: berta approved it by ChangeApproval "a"`,
		`Normal KausalityApprovalUsed of Database: spec.forProvider.size of Instance db-1 was applied: berta approved it by ChangeApproval "a"`,
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("events, -want, +got:\n%s", diff)
	}

	// 3. It is deleted, made again as from Git, and the change is held once more.
	if err := w.client.Delete(t.Context(), cha); err != nil {
		t.Fatal(err)
	}

	w.writes = nil
	w.approveAs("uid-again")
	w.report(true)
	w.mustSettle()
	w.expectWrites("It grants nothing.", "patch status of ChangeApproval a")

	if w.state() != v1alpha1.ApprovalStateSuperseded {
		t.Errorf("it is %s", w.state())
	}

	// 4. After 30 days it goes.
	w.now = w.now.Add(v1alpha1.MaxApprovalAge)
	w.mustSettle()
	w.expectWrites("It is old.", "delete ChangeApproval a")
}

func TestWhereverItIsStoppedAnApprovalIsCarriedOutOnce(t *testing.T) {
	for stop := 1; stop <= 6; stop++ {
		t.Run(fmt.Sprintf("after %d writes", stop-1), func(t *testing.T) {
			w := newWorld(t, claim, xr, instance)
			w.report(true)
			w.approve()
			w.failAt = stop

			grants := 0
			settle := func() {
				for range 2 {
					if _, err := w.settle(); err != nil && !errors.Is(err, fixture.ErrRefused) {
						t.Fatal(err)
					}
				}
			}

			w.before = func(write string) {
				if write == "patch XDatabase db-x" && len(w.allowances()) == 0 {
					grants++
				}
			}

			settle()
			w.report(false, w.use(v1alpha1.ApprovalUsed))
			settle()
			w.report(true) // Somebody has put the old value back.
			settle()

			if list := w.allowances(); len(list) > 0 || w.state() != v1alpha1.ApprovalStateApplied || len(w.approved()) != 1 {
				t.Errorf("allowances %+v, state %s, remembered %+v", list, w.state(), w.approved())
			}

			if refused := stop == 2; grants != 1 && !refused || grants != 2 && refused {
				t.Errorf("it is given %d times", grants)
			}
		})
	}
}

func TestWhatHasChangedSinceItWasReadIsNotWritten(t *testing.T) {
	w := newWorld(t, claim, xr, instance)
	w.report(true)
	w.approve()

	w.before = func(write string) {
		if write != "patch XDatabase db-x" {
			return
		}

		w.before = nil
		w.report(false) // It was taken back.
	}

	if _, err := w.settle(); !apierrors.IsConflict(err) {
		t.Fatalf("error %v, want a conflict", err)
	}

	if list := w.allowances(); len(list) > 0 {
		t.Errorf("allowances %+v", list)
	}

	w.mustSettle()

	if w.state() != v1alpha1.ApprovalStateSuperseded {
		t.Errorf("it is %s", w.state())
	}
}

func TestAnApprovalIsTakenAwayBeforeItIsUsed(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(*world)
		want   v1alpha1.ApprovalState
	}{
		"It is withdrawn": {
			reason: "By deleting it.",
			do: func(w *world) {
				if err := w.client.Delete(w.t.Context(), &v1alpha1.ChangeApproval{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a"}}); err != nil {
					w.t.Fatal(err)
				}
			},
		},
		"The right is lost": {reason: "It is asked again.", do: func(w *world) { w.refused = []string{"berta"} }, want: v1alpha1.ApprovalStateNotAllowed},
		"It expires":        {reason: "After a day.", do: func(w *world) { w.now = w.now.Add(24 * time.Hour) }, want: v1alpha1.ApprovalStateExpired},
		"It expires, and the object may not be read": {
			reason: "That makes no approval last.", want: v1alpha1.ApprovalStateExpired,
			do: func(w *world) { w.now, w.unread = w.now.Add(24*time.Hour), []string{"Instance"} },
		},
		"It is taken back": {
			reason: "The function says so.", want: v1alpha1.ApprovalStateSuperseded,
			do: func(w *world) { w.report(false, w.use(v1alpha1.ApprovalAbsent)) },
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claim, xr, instance)
			w.report(true)
			w.approve()
			w.mustSettle()
			tc.do(w)
			w.mustSettle()

			if list := w.allowances(); len(list) > 0 || w.state() != tc.want {
				t.Errorf("%s\nallowances %+v, state %q, want %q", tc.reason, list, w.state(), tc.want)
			}

			if len(w.approved()) > 0 {
				t.Errorf("%s\nit is remembered as made: %+v", tc.reason, w.approved())
			}
		})
	}
}

func TestOtherAllowancesStay(t *testing.T) {
	w := newWorld(t, claim, xr, instance)
	policys := fixture.AllSourced([]v1alpha1.Allowance{{Kind: "Instance", Mutation: "spec.b", Generation: 5, Initiator: "hans", Policy: "p"}})

	u := w.get(xrRef())
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowances: allowance.FormatList(policys), "theirs": "too"})

	if err := w.client.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}

	w.report(true)
	w.approve()
	w.mustSettle()
	w.report(false, w.use(v1alpha1.ApprovalUsed))
	w.mustSettle()

	if diff := cmp.Diff(policys, w.allowances()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if w.get(xrRef()).GetAnnotations()["theirs"] != "too" {
		t.Error("an annotation of others is gone")
	}
}

func TestAParentThatMayNotBeReadIsWaitedFor(t *testing.T) {
	w := newWorld(t, claim, xr, instance)
	w.report(true)
	w.approve()

	pch := &v1alpha1.PendingChange{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "database-db"}, pch); err != nil {
		t.Fatal(err)
	}

	root := w.get(claimRef())
	w.unread = []string{"XDatabase"}
	status := &v1alpha1.PendingChangeStatus{Required: 1, Total: 1, Changes: []v1alpha1.HeldChange{w.entry()}}

	again, err := w.Settler.Settle(t.Context(), root, pch, status)
	if err != nil || again == 0 || status.Approvals[0].State != v1alpha1.ApprovalStateWaiting {
		t.Errorf("again in %s, %v: %+v", again, err, status.Approvals)
	}
}

func TestAChangeApprovalThatHasLostItsPendingChangeEnds(t *testing.T) {
	w := newWorld(t, claim, xr, instance)
	l := Leftovers{Settler: w.Settler}

	key := client.ObjectKey{Namespace: "team-a", Name: "a"}
	look := func() time.Duration {
		res, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}

		return res.RequeueAfter
	}

	w.report(true)
	w.approve()
	look()
	w.expectWrites("It is looked at with its PendingChange.")
	w.mustSettle()
	w.report(false)

	pch := &v1alpha1.PendingChange{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "database-db"}}
	if err := w.client.Delete(t.Context(), pch); err != nil {
		t.Fatal(err)
	}

	// It is carried, and the function has not said how far it is.
	look()

	if w.state() != v1alpha1.ApprovalStateGranted {
		t.Errorf("it is %s", w.state())
	}

	w.report(false, w.use(v1alpha1.ApprovalAbsent))

	if again := look(); again == 0 || w.state() != v1alpha1.ApprovalStateSuperseded || len(w.allowances()) > 0 {
		t.Errorf("it is %s, again in %s, and the XR carries %+v", w.state(), again, w.allowances())
	}

	w.writes, w.now = nil, w.now.Add(v1alpha1.MaxApprovalAge)
	look()
	w.expectWrites("It is old.", "delete ChangeApproval a")
	look()
}

func TestObjectsAreReadFromTheCacheOrTheAPIServer(t *testing.T) {
	w := newWorld(t, claim, xr, instance)

	for name, tc := range map[string]struct {
		ref  v1alpha1.ObjectReference
		live bool
		gone bool
	}{
		"what is watched":                {ref: xrRef()},
		"what is watched, live":          {ref: xrRef(), live: true},
		"what is not watched":            {ref: w.entry().Ref},
		"another one of the name":        {ref: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "XDatabase", Name: "db-x", UID: "before"}, gone: true},
		"one that is not there":          {ref: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "XDatabase", Name: "none"}, gone: true},
		"of whatever UID there is":       {ref: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "XDatabase", Name: "db-x"}},
		"one that is not watched either": {ref: v1alpha1.ObjectReference{APIVersion: "rds.example.org/v1", Kind: "Instance", Name: "none"}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := w.Settler.Objects.Read(t.Context(), tc.ref, tc.live)
			if errors.Is(err, object.ErrGone) != tc.gone || !tc.gone && (err != nil || u.GetName() != tc.ref.Name) {
				t.Errorf("got %v, %v", u, err)
			}
		})
	}
}

// TestWhoBreaksTheGlassIsToldOf by a warning in the place of what is said of who approves.
func TestWhoBreaksTheGlassIsToldOf(t *testing.T) {
	w := newWorld(t, claim, xr, instance)
	w.report(true)
	w.decide("uid-a", v1alpha1.DecisionBreakGlass)
	w.mustSettle()

	want := []string{
		`Warning KausalityBreakGlass of XDatabase: spec.forProvider.size of Instance db-1 is allowed by berta alone, by ChangeApproval "a": INFRA-1`,
		`Warning KausalityBreakGlass of Database: spec.forProvider.size of Instance db-1 is allowed by berta alone, by ChangeApproval "a": INFRA-1`,
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("events, -want, +got:\n%s", diff)
	}
}
