// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	claim = `{apiVersion: example.org/v1, kind: Store, metadata: {name: corner, namespace: team-a, uid: claim},
  spec: {resourceRef: {apiVersion: example.org/v1, kind: XStore, name: corner-x}}}`
	xr = `{apiVersion: example.org/v1, kind: XStore, metadata: {name: corner-x, uid: xr},
  spec: {claimRef: {apiVersion: example.org/v1, kind: Store, namespace: team-a, name: corner},
    resourceRefs: [{apiVersion: example.org/v1, kind: Instance, name: db}, {apiVersion: example.org/v1, kind: XShelf, name: shelf}]}}`
	nested = `{apiVersion: example.org/v1, kind: XShelf, metadata: {name: shelf, uid: shelf,
  ownerReferences: [{apiVersion: example.org/v1, kind: XStore, name: corner-x, uid: xr, controller: true}]}, spec: {resourceRefs: []}}`
	db = `{apiVersion: example.org/v1, kind: Instance, metadata: {name: db, uid: i,
  ownerReferences: [{apiVersion: example.org/v1, kind: XStore, name: corner-x, uid: xr, controller: true}]}, spec: {forProvider: {}}}`
	lab        = `{apiVersion: example.org/v1, kind: Lab, metadata: {name: physics, namespace: team-a, uid: lab}, spec: {crossplane: {resourceRefs: []}}}`
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: app, namespace: team-a, uid: app}}`
	replicaSet = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: app-1, namespace: team-a, uid: rs,
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: app, uid: app, controller: true}]}}`
	// A root in no namespace.
	wide = `{apiVersion: example.org/v1, kind: XStore, metadata: {name: wide, uid: wide}, spec: {resourceRefs: []}}`
)

func TestThereIsOneForTheObjectThatPeopleEdit(t *testing.T) {
	cases := map[string]struct {
		objects []string
		change  map[string]func(*unstructured.Unstructured)
		observe []string
		root    v1alpha1.ObjectReference
		ns      string
		want    []string
	}{
		"Of what an XR lists the Claim": {
			objects: []string{claim, xr}, change: map[string]func(*unstructured.Unstructured){"XStore corner-x": lists(instance("db", "spec.size"))},
			observe: []string{"XStore corner-x"}, root: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Store", Namespace: "team-a", Name: "corner", UID: "claim"},
			ns: "team-a", want: []string{"db spec.size of corner-x"},
		},
		"Of what a nested XR lists, too": {
			objects: []string{claim, xr, nested}, change: map[string]func(*unstructured.Unstructured){"XShelf shelf": lists(instance("db", "spec.size"))},
			observe: []string{"XShelf shelf"}, root: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Store", Namespace: "team-a", Name: "corner", UID: "claim"},
			ns: "team-a", want: []string{"db spec.size of shelf"},
		},
		"Of a resource that was edited by hand, too": {
			objects: []string{claim, xr, db}, change: map[string]func(*unstructured.Unstructured){"Instance db": holding("spec.forProvider.size")},
			observe: []string{"Instance db"}, root: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Store", Namespace: "team-a", Name: "corner", UID: "claim"},
			ns: "team-a", want: []string{"db spec.forProvider.size of corner-x"},
		},
		"A Claim leads to what its XRs list": {
			objects: []string{claim, xr, nested}, change: map[string]func(*unstructured.Unstructured){
				"Store corner":    func(u *unstructured.Unstructured) { say(u, v1alpha1.ConditionKausality, "False", "Held", "m") },
				"XStore corner-x": lists(instance("db", "spec.size")), "XShelf shelf": lists(instance("other", "spec.size")),
			},
			observe: []string{"Store corner"}, root: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Store", Namespace: "team-a", Name: "corner", UID: "claim"},
			ns: "team-a", want: []string{"other spec.size of shelf", "db spec.size of corner-x"},
		},
		"Without a Claim it is the XR": {
			objects: []string{lab}, change: map[string]func(*unstructured.Unstructured){"Lab physics": lists(instance("db", "spec.size"))}, observe: []string{"Lab physics"},
			root: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Lab", Namespace: "team-a", Name: "physics", UID: "lab"}, ns: "team-a", want: []string{"db spec.size of physics"},
		},
		"Of an XR in no namespace it is in ours": {
			objects: []string{wide}, change: map[string]func(*unstructured.Unstructured){"XStore wide": lists(instance("db", "spec.size"))}, observe: []string{"XStore wide"},
			root: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "XStore", Name: "wide", UID: "wide"}, ns: own, want: []string{"db spec.size of wide"},
		},
		"Of a ReplicaSet it is the Deployment": {
			objects: []string{deployment, replicaSet}, change: map[string]func(*unstructured.Unstructured){"ReplicaSet app-1": holding("spec.replicas")}, observe: []string{"ReplicaSet app-1"},
			root: v1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "team-a", Name: "app", UID: "app"}, ns: "team-a", want: []string{"app-1 spec.replicas of app"},
		},
		"Without the Deployment the ReplicaSet itself": {
			objects: []string{replicaSet}, change: map[string]func(*unstructured.Unstructured){"ReplicaSet app-1": holding("spec.replicas")}, observe: []string{"ReplicaSet app-1"},
			root: v1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "team-a", Name: "app-1", UID: "rs"}, ns: "team-a", want: []string{"app-1 spec.replicas"},
		},
		"Where nothing is held there is none": {objects: []string{claim, xr, db}, observe: []string{"Store corner", "XStore corner-x", "Instance db"}},
		"Where nothing but an edit is recorded there is none": {
			objects: []string{claim, xr}, change: map[string]func(*unstructured.Unstructured){"Store corner": func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{v1alpha1.AnnotationHeld: "[{field: spec.size, cause: {type: Edit, user: anna, since: \"2026-03-04T00:00:00Z\"}, stored: {}}]"})
			}}, observe: []string{"Store corner"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.objects...)
			for object, change := range tc.change {
				h.change(t, object, change)
			}

			h.observe(t, tc.observe...)

			if diff := cmp.Diff(tc.want, h.lines(t)); diff != "" {
				t.Fatalf("changes, -want, +got:\n%s", diff)
			}

			pch := h.pch(t)
			if tc.want == nil {
				if pch != nil || len(h.writes) > 0 {
					t.Errorf("%v %+v", h.writes, pch)
				}

				return
			}

			owners := []metav1.OwnerReference{{APIVersion: tc.root.APIVersion, Kind: tc.root.Kind, Name: tc.root.Name, UID: tc.root.UID, BlockOwnerDeletion: new(false)}}
			if diff := cmp.Diff(owners, pch.OwnerReferences); diff != "" {
				t.Errorf("owners, -want, +got:\n%s", diff)
			}

			if diff := cmp.Diff(tc.root, pch.Spec.ObjectRef); diff != "" || pch.Namespace != tc.ns ||
				pch.Name != pending.Name(schema.FromAPIVersionAndKind(tc.root.APIVersion, tc.root.Kind).GroupKind(), tc.root.Name) {
				t.Errorf("%s/%s of, -want, +got:\n%s", pch.Namespace, pch.Name, diff)
			}
		})
	}
}

// heldBelowClaim is a Claim of which a resource has a change held.
func heldBelowClaim(t *testing.T) *harness {
	t.Helper()

	h := newHarness(t, claim, xr, db)
	h.change(t, "XStore corner-x", lists(instance("db", "spec.size"), v1alpha1.HeldChange{
		Ref: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Instance", Name: "new"}, Field: "create", Digest: sha("new"), ComposedResource: "new",
	}))
	h.change(t, "Instance db", holding("spec.forProvider.color"))
	h.observe(t, "Store corner", "XStore corner-x", "Instance db")

	if diff := cmp.Diff([]string{"db spec.forProvider.color of corner-x", "db spec.size of corner-x", "new create of corner-x"}, h.lines(t)); diff != "" {
		t.Fatal(diff)
	}

	h.writes = nil

	return h
}

func TestTheSameIsNotWrittenAgain(t *testing.T) {
	h := heldBelowClaim(t)

	// 1. Re-renders, each of which has the status written anew.
	for i := range 100 {
		h.now = h.now.Add(time.Second)
		h.change(t, "XStore corner-x", func(u *unstructured.Unstructured) {
			u.SetGeneration(int64(i))
			u.SetLabels(map[string]string{"rendered": strconv.Itoa(i)})
		})
		h.observe(t, "Store corner", "XStore corner-x", "Instance db")
	}

	// 2. Ten minutes of polling, with the root reconciled whether or not anything happened.
	for range 20 {
		h.now = h.now.Add(30 * time.Second)
		h.Reconciler.index.ask(Root{GroupKind: schema.GroupKind{Group: "example.org", Kind: "Store"}, Namespace: "team-a", Name: "corner"})
		h.observe(t, "Store corner", "XStore corner-x", "Instance db")
	}

	// 3. A restart.
	h.restart(t)
	h.observe(t, "Instance db", "XStore corner-x", "Store corner")

	if len(h.writes) > 0 {
		t.Errorf("it wrote %v", h.writes)
	}

	// What this is not about: something changes.
	h.change(t, "XStore corner-x", lists(instance("db", "spec.other")))
	h.observe(t, "XStore corner-x")

	if diff := cmp.Diff([]string{"patch status PendingChange"}, h.writes); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestAChangeGoesOnceItIsKnownNotToBeHeld(t *testing.T) {
	all := []string{"db spec.forProvider.color of corner-x", "db spec.size of corner-x", "new create of corner-x"}

	cases := map[string]struct {
		do      func(h *harness)
		observe []string
		want    []string
		current string
	}{
		"The XR does not list it any more": {
			do: func(h *harness) { h.change(t, "XStore corner-x", lists()) }, observe: []string{"XStore corner-x"},
			want: []string{"db spec.forProvider.color of corner-x"},
		},
		"The object does not say so any more": {
			do: func(h *harness) { h.change(t, "Instance db", holding()) }, observe: []string{"Instance db"},
			want: []string{"db spec.size of corner-x", "new create of corner-x"},
		},
		"The object is gone, of which the XR says nothing yet": {
			do:   func(h *harness) { h.remove(t, "Instance db") },
			want: []string{"db spec.size of corner-x", "new create of corner-x"},
		},
		"Its pipeline fails": {
			do: func(h *harness) {
				h.change(t, "XStore corner-x", func(u *unstructured.Unstructured) {
					say(u, v1alpha1.ConditionState, "Unknown", "FatalError", "it failed")
				})
			}, observe: []string{"XStore corner-x"}, want: all, current: "PipelineFailed",
		},
		"It went while nobody was there": {
			do: func(h *harness) {
				h.change(t, "Instance db", holding())
				h.change(t, "XStore corner-x", lists(instance("db", "spec.size")))
				h.restart(t)
			}, want: []string{"db spec.size of corner-x"},
		},
		"A restart finds the rest before it hears of it": {
			do: func(h *harness) { h.restart(t) }, want: all,
		},
		"The pipeline fails, and the manager restarts": {
			do: func(h *harness) {
				h.change(t, "XStore corner-x", func(u *unstructured.Unstructured) {
					say(u, v1alpha1.ConditionState, "Unknown", "FatalError", "it failed")
				})
				h.restart(t)
			}, want: all, current: "PipelineFailed",
		},
		"Its XR may not be read": {
			do: func(h *harness) {
				h.unwatched["XStore"] = true
				h.fail["get XStore"] = apierrors.NewForbidden(schema.GroupResource{}, "corner-x", nil)
				h.restart(t)
			}, want: all,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := heldBelowClaim(t)
			tc.do(h)
			h.observe(t, tc.observe...)

			if diff := cmp.Diff(tc.want, h.lines(t)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			want := tc.current
			if want == "" {
				want = v1alpha1.ReasonCurrent
			}

			if c := h.pch(t).Status.Conditions[0]; c.Reason != want {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

func TestWhatChangesWhileItIsReadIsHeardOf(t *testing.T) {
	for name, change := range map[string]func(*unstructured.Unstructured){"Instance db": holding(), "XStore corner-x": lists()} {
		t.Run(name, func(t *testing.T) {
			h := heldBelowClaim(t)
			h.restart(t)

			h.read = func(read string) {
				if read != name {
					return
				}

				h.read = nil // Once.
				h.change(t, name, change)

				if err := h.Reconciler.Observe(t.Context(), h.get(t, name)); err != nil {
					t.Fatal(err)
				}
			}

			h.run(t)

			if got := h.lines(t); h.read != nil || len(got) == 3 {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestWhatWasWrittenIsWaitedFor(t *testing.T) {
	h := heldBelowClaim(t)
	root := pending.KeyOfObject(h.get(t, "Store corner"))

	// shown is the PendingChange that the cache shows; nil for that which there is.
	var shown *v1alpha1.PendingChange

	writing, _ := h.Reconciler.Client.(client.WithWatch)
	h.Reconciler.Client = object.NewClient(interceptor.NewClient(writing, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if pch, ok := obj.(*v1alpha1.PendingChange); ok && shown != nil {
				shown.DeepCopyInto(pch)

				return nil
			}

			return c.Get(ctx, key, obj, opts...)
		},
	}), 1, h.Reconciler.Now)

	steps := []struct {
		reason string
		change func(*unstructured.Unstructured)
		after  time.Duration
		behind bool
		late   bool
		writes int
	}{
		{reason: "What is new is written.", change: lists(), writes: 1},
		{reason: "The cache does not show that yet: nothing is written by what was before.", change: lists(instance("db", "spec.size")), behind: true, late: true},
		{reason: "It does.", writes: 1},
		{reason: "Versions may have started over: it is tried.", change: lists(), after: time.Minute, behind: true, late: true, writes: 1},
	}

	old := h.pch(t)

	for _, s := range steps {
		if shown = nil; s.behind {
			shown = old
		}

		if s.change != nil {
			h.change(t, "XStore corner-x", s.change)
		}

		h.writes, h.now = nil, h.now.Add(s.after)

		if _, err := h.Reconciler.Reconcile(t.Context(), root); object.Outdated(err) != s.late || err != nil && !s.late || len(h.writes) != s.writes {
			t.Errorf("%s\n%v, wrote %v", s.reason, err, h.writes)
		}
	}
}

func TestWhatHasMovedIsListedThere(t *testing.T) {
	h := newHarness(t, deployment, replicaSet, strings.NewReplacer("name: app", "name: other", "uid: app", "uid: other").Replace(deployment))
	h.change(t, "ReplicaSet app-1", holding("spec.replicas"))
	h.observe(t, "ReplicaSet app-1")

	// Nobody heard of it yet.
	h.change(t, "ReplicaSet app-1", func(u *unstructured.Unstructured) {
		owners := u.GetOwnerReferences()
		owners[0].Name, owners[0].UID = "other", "other"
		u.SetOwnerReferences(owners)
	})

	if _, err := h.Reconciler.Reconcile(t.Context(), pending.KeyOfObject(h.get(t, "Deployment app"))); err != nil || len(h.lines(t)) > 0 {
		t.Errorf("%v: %v", err, h.lines(t))
	}

	if err := h.Reconciler.Observe(t.Context(), h.get(t, "ReplicaSet app-1")); err != nil || !slices.Contains(h.asked(), "Deployment other") {
		t.Errorf("%v: it asks for %v", err, h.asked())
	}
}

func TestOneOfWhichNothingIsHeldGoesAnHourLater(t *testing.T) {
	h := heldBelowClaim(t)
	h.change(t, "Instance db", holding())
	h.change(t, "XStore corner-x", lists())

	res := h.observe(t, "Instance db", "XStore corner-x")

	pch := h.pch(t)
	if res.RequeueAfter != time.Hour || pch.Status.FinishedAt == nil || !pch.Status.FinishedAt.Time.Equal(h.now) || pch.Status.Total != 0 {
		t.Fatalf("again after %s: %+v", res.RequeueAfter, pch.Status)
	}

	if n := len(h.Reconciler.index.objects); n > 0 {
		t.Errorf("%d objects are remembered", n)
	}

	// It is asked for before its time, and something is held again.
	h.now = h.now.Add(59 * time.Minute)
	h.restart(t)

	if res = h.run(t); res.RequeueAfter != time.Minute {
		t.Errorf("again after %s", res.RequeueAfter)
	}

	h.change(t, "XStore corner-x", lists(instance("db", "spec.size")))

	h.observe(t, "XStore corner-x")

	if h.pch(t).Status.FinishedAt != nil {
		t.Error("it is not over")
	}

	h.change(t, "XStore corner-x", lists())
	h.observe(t, "XStore corner-x")

	h.now = h.now.Add(time.Hour)
	h.restart(t)

	h.run(t)

	if h.pch(t) != nil {
		t.Error("it is not deleted")
	}
}

func TestAnObjectMadeAnewHasAnotherOne(t *testing.T) {
	h := heldBelowClaim(t)
	h.remove(t, "Store corner")

	if err := h.client.Create(t.Context(), fixture.Parse(t, claim), &client.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	h.change(t, "Store corner", func(u *unstructured.Unstructured) { u.SetUID("other") })

	// The old one goes first.
	if res := h.run(t); !res.IsZero() || h.pch(t) != nil {
		t.Fatalf("%+v %+v", res, h.pch(t))
	}

	// That is heard of.
	h.Reconciler.index.ask(pending.KeyOfObject(h.get(t, "Store corner")))
	h.run(t)

	if pch := h.pch(t); pch == nil || pch.Spec.ObjectRef.UID != "other" {
		t.Errorf("%+v", pch)
	}
}

func TestWhatStaysOfARootThatIsGoneHasAnother(t *testing.T) {
	h := newHarness(t, deployment, replicaSet)
	h.change(t, "ReplicaSet app-1", holding("spec.replicas"))
	h.observe(t, "ReplicaSet app-1")

	if err := h.client.Delete(t.Context(), h.pch(t)); err != nil { // As the garbage collector does.
		t.Fatal(err)
	}

	h.remove(t, "Deployment app")
	h.run(t)

	if pch := h.pch(t); pch == nil || pch.Spec.ObjectRef.Kind != "ReplicaSet" {
		t.Errorf("%+v", pch)
	}
}

func TestARootThatGetsAParentIsNoneAnyMore(t *testing.T) {
	h := newHarness(t, replicaSet)
	h.change(t, "ReplicaSet app-1", holding("spec.replicas"))
	h.observe(t, "ReplicaSet app-1")

	if pch := h.pch(t); pch == nil || pch.Spec.ObjectRef.Kind != "ReplicaSet" {
		t.Fatalf("%+v", pch)
	}

	if err := h.client.Create(t.Context(), fixture.Parse(t, deployment)); err != nil {
		t.Fatal(err)
	}

	h.restart(t)
	h.run(t)

	if pch := h.pch(t); pch == nil || pch.Spec.ObjectRef.Kind != "Deployment" {
		t.Errorf("%+v", pch)
	}
}

func TestAReferenceInAWrongNamespaceIsToTheSameRoot(t *testing.T) {
	h := newHarness(t, wide)
	h.change(t, "XStore wide", lists(instance("db", "spec.size")))
	h.observe(t, "XStore wide")

	h.Reconciler.index.ask(Root{GroupKind: schema.GroupKind{Group: "example.org", Kind: "XStore"}, Namespace: "team-a", Name: "wide"})
	h.writes = nil

	h.run(t)

	if len(h.writes) > 0 || h.pch(t) == nil {
		t.Errorf("it wrote %v", h.writes)
	}
}

// settler is what approvals make of a status.
type settler struct {
	do   func(status *v1alpha1.PendingChangeStatus) (time.Duration, error)
	seen []string
}

func (s *settler) Settle(_ context.Context, root *unstructured.Unstructured, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus) (time.Duration, error) {
	s.seen = append(s.seen, fmt.Sprintf("%s %s %d", root.GetName(), pch.GetUID(), status.Total))

	return s.do(status)
}

func TestApprovalsAreSettledBeforeItIsWritten(t *testing.T) {
	errSettle := errors.New("boom")
	underWay := func(status *v1alpha1.PendingChangeStatus) (time.Duration, error) {
		status.FinishedAt = nil
		status.Approvals = []v1alpha1.PendingApproval{{Name: "a", State: v1alpha1.ApprovalStateGranted}}

		return 5 * time.Second, nil
	}

	cases := map[string]struct {
		do        func(*v1alpha1.PendingChangeStatus) (time.Duration, error)
		list      []v1alpha1.HeldChange
		again     time.Duration
		approvals int
		finished  bool
		total     int32
		err       error
	}{
		"What is under way is not over": {do: underWay, again: 5 * time.Second, approvals: 1},
		"What is held is approved":      {do: underWay, list: []v1alpha1.HeldChange{instance("db", "spec.other")}, again: 5 * time.Second, approvals: 1, total: 1},
		"What is over is":               {do: func(*v1alpha1.PendingChangeStatus) (time.Duration, error) { return 0, nil }, again: time.Hour, finished: true},
		"An error keeps nothing from being listed": {do: func(status *v1alpha1.PendingChangeStatus) (time.Duration, error) {
			status.Total = 7

			return 0, errSettle
		}, list: []v1alpha1.HeldChange{instance("db", "spec.other")}, total: 1, err: errSettle},
		"Nor does one end anything": {do: func(*v1alpha1.PendingChangeStatus) (time.Duration, error) { return 0, errSettle }, err: errSettle},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, claim, xr)
			h.change(t, "XStore corner-x", lists(instance("db", "spec.size")))
			h.observe(t, "XStore corner-x")

			s := &settler{do: tc.do}
			h.Reconciler.Approvals = s
			h.change(t, "XStore corner-x", lists(tc.list...))

			if err := h.Reconciler.Observe(t.Context(), h.get(t, "XStore corner-x")); err != nil {
				t.Fatal(err)
			}

			res, err := h.Reconciler.Reconcile(t.Context(), pending.KeyOfObject(h.get(t, "Store corner")))
			status := h.pch(t).Status

			if !errors.Is(err, tc.err) || res.RequeueAfter != tc.again || (status.FinishedAt != nil) != tc.finished || status.Total != tc.total || len(status.Approvals) != tc.approvals {
				t.Errorf("again after %s, %v: %+v", res.RequeueAfter, err, status)
			}

			if diff := cmp.Diff([]string{fmt.Sprintf("corner pch %d", len(tc.list))}, s.seen); diff != "" {
				t.Errorf("settled, -want, +got:\n%s", diff)
			}
		})
	}
}

// TestWhatIsCarriedIsSettledWhateverBecomesOfThePendingChange for else it would be carried for ever:
// to delete a PendingChange is free.
func TestWhatIsCarriedIsSettledWhateverBecomesOfThePendingChange(t *testing.T) {
	h := newHarness(t, claim, xr)

	var seen []v1alpha1.PendingApproval

	h.Reconciler.Approvals = settling(func(pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus) {
		seen, status.FinishedAt = pch.Status.Approvals, nil
	})

	h.change(t, "XStore corner-x", func(u *unstructured.Unstructured) {
		lists()(u)
		u.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowances: allowance.FormatList(fixture.AllSourced([]v1alpha1.Allowance{{
			Kind: "Instance", Mutation: "spec.size", Generation: 1, Initiator: "anna", Digest: sha("a"), Approval: "cha",
			Trace: []v1alpha1.Hop{{Kind: "ChangeApproval", Name: "cha"}},
		}}))})
	})
	h.observe(t, "XStore corner-x") // As after a restart.

	for i := range 2 {
		if len(seen) != 1 || seen[0].Digest != sha("a") || seen[0].Parent == nil || seen[0].Parent.Name != "corner-x" || seen[0].State.Final() {
			t.Fatalf("%d: settled: %+v", i, seen)
		}

		pch := h.pch(t)
		if pch == nil {
			t.Fatalf("%d: there is none", i)
		}

		if err := h.client.Delete(t.Context(), pch); err != nil {
			t.Fatal(err)
		}

		seen = nil

		if _, err := h.Reconciler.Reconcile(t.Context(), pending.KeyOf(pch.Spec.ObjectRef)); err != nil {
			t.Fatal(err)
		}
	}

	// Once it is taken away there is none to be made.
	if err := h.client.Delete(t.Context(), h.pch(t)); err != nil {
		t.Fatal(err)
	}

	h.change(t, "XStore corner-x", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
	h.observe(t, "XStore corner-x")

	if pch := h.pch(t); pch != nil {
		t.Errorf("%+v", pch)
	}
}

// settling are approvals that are told of.
type settling func(*v1alpha1.PendingChange, *v1alpha1.PendingChangeStatus)

func (s settling) Settle(_ context.Context, _ *unstructured.Unstructured, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus) (time.Duration, error) {
	s(pch, status)

	return 0, nil
}

func TestWhatFailsIsTriedAgain(t *testing.T) {
	gr := schema.GroupResource{Resource: "pendingchanges"}
	ending := apierrors.NewForbidden(gr, "x", errors.New("it ends"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating"}}

	cases := map[string]struct {
		verb string
		fail error
		late bool
		err  bool
	}{
		"Another one was quicker to make it":         {verb: "create PendingChange", fail: apierrors.NewAlreadyExists(gr, "x"), err: true, late: true},
		"Somebody has changed it":                    {verb: "patch status PendingChange", fail: apierrors.NewConflict(gr, "x", nil), err: true, late: true},
		"It is gone, and that is heard of":           {verb: "patch status PendingChange", fail: apierrors.NewNotFound(gr, "x")},
		"Its namespace ends":                         {verb: "create PendingChange", fail: ending},
		"It may not be written":                      {verb: "patch status PendingChange", fail: apierrors.NewForbidden(gr, "x", nil), err: true},
		"A resource of another kind may not be read": {verb: "get Instance", fail: apierrors.NewForbidden(gr, "x", nil)},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, claim, xr)
			h.change(t, "XStore corner-x", lists(instance("db", "spec.size")))
			h.fail[tc.verb] = tc.fail

			res, err := h.Reconciler.Reconcile(t.Context(), pending.KeyOfObject(h.get(t, "Store corner")))
			if !res.IsZero() || (err != nil) != tc.err || object.Outdated(err) != tc.late {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

func TestOnlyWhatSaysSomethingIsRemembered(t *testing.T) {
	texts := make([]string, 0, 2000)
	for i := range 2000 {
		texts = append(texts, fmt.Sprintf("{apiVersion: example.org/v1, kind: Lab, metadata: {name: l%d, namespace: team-a, uid: l%d}, spec: {crossplane: {}}}", i, i))
	}

	h := newHarness(t, texts...)
	for i := range 2000 {
		if err := h.Reconciler.Observe(t.Context(), h.get(t, fmt.Sprint("Lab l", i))); err != nil {
			t.Fatal(err)
		}
	}

	if n := len(h.Reconciler.index.objects) + len(h.Reconciler.index.waiting) + len(h.live); n > 0 {
		t.Errorf("%d are remembered, asked for or read, of which nothing is held", n)
	}
}

// TestTwoThousandHoldsAreTwoWritesEach also logs what an index takes of memory.
func TestTwoThousandHoldsAreTwoWritesEach(t *testing.T) {
	const n = 2000

	texts := make([]string, 0, n)
	for i := range n {
		texts = append(texts, fmt.Sprintf("{apiVersion: example.org/v1, kind: Lab, metadata: {name: l%d, namespace: team-a, uid: l%d}, spec: {crossplane: {}}}", i, i))
	}

	h := newHarness(t, texts...)
	observe := func() {
		for i := range n {
			if err := h.Reconciler.Observe(t.Context(), h.get(t, fmt.Sprint("Lab l", i))); err != nil {
				t.Fatal(err)
			}
		}
	}

	for i := range n {
		h.change(t, fmt.Sprint("Lab l", i), lists(instance("db", "spec.size"), instance("db", "spec.color")))
	}

	runtime.GC()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	observe()
	runtime.GC()
	runtime.ReadMemStats(&after)

	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n
	t.Logf("the index takes %d bytes for an object", each)

	if each > 4096 || len(h.Reconciler.index.objects) != n {
		t.Errorf("%d objects, of %d bytes", len(h.Reconciler.index.objects), each)
	}

	h.run(t)

	if len(h.writes) != 2*n {
		t.Errorf("%d writes", len(h.writes))
	}

	h.writes = nil

	observe()
	h.run(t)
	h.restart(t)
	observe()
	h.run(t)

	if len(h.writes) > 0 {
		t.Errorf("%d more writes", len(h.writes))
	}
}

func TestWhatIsHeldIsMeasured(t *testing.T) {
	h := heldBelowClaim(t)
	h.now = h.now.Add(90 * time.Second)

	if diff := cmp.Diff(map[string]float64{"example.org/Store": 1}, gauges(t, h, "kausality_pending_changes")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if diff := cmp.Diff(map[string]float64{"": 90}, gauges(t, h, "kausality_pending_oldest_seconds")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	h.change(t, "Instance db", holding())
	h.change(t, "XStore corner-x", lists())
	h.observe(t, "Instance db", "XStore corner-x")

	if diff := cmp.Diff(map[string]float64{"": 0}, gauges(t, h, "kausality_pending_oldest_seconds")); diff != "" {
		t.Errorf("once it is over, -want, +got:\n%s", diff)
	}
}

// gauges are those of one name, by group and kind.
func gauges(t *testing.T, h *harness, name string) map[string]float64 {
	t.Helper()

	families, err := h.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]float64{}

	for _, f := range families {
		if f.GetName() != name {
			continue
		}

		for _, m := range f.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				if key != "" {
					key += "/"
				}

				key += l.GetValue()
			}

			out[key] = m.GetGauge().GetValue()
		}
	}

	return out
}

func TestTheSearchForARootEnds(t *testing.T) {
	loop := func(name, uid, owner, ownerUID string) string {
		return fmt.Sprintf("{apiVersion: example.org/v1, kind: Loop, metadata: {name: %s, namespace: team-a, uid: %s, ownerReferences: "+
			"[{apiVersion: example.org/v1, kind: Loop, name: %s, uid: %s, controller: true}]}}", name, uid, owner, ownerUID)
	}

	chain := make([]string, 0, 40)
	for i := range 40 {
		chain = append(chain, loop(fmt.Sprint("c", i), fmt.Sprint("c", i), fmt.Sprint("c", i+1), fmt.Sprint("c", i+1)))
	}

	cases := map[string]struct {
		objects []string
		from    []string
		want    string
	}{
		"Parents that lead back have the first by UID": {objects: []string{loop("a", "u2", "b", "u1"), loop("b", "u1", "a", "u2"), loop("c", "u0", "a", "u2")}, from: []string{"Loop a", "Loop b", "Loop c"}, want: "b"},
		"One that is its own parent":                   {objects: []string{loop("a", "u1", "a", "u1")}, from: []string{"Loop a"}, want: "a"},
		"Too many parents":                             {objects: chain, from: []string{"Loop c0"}, want: "c0"},
		"One whose parent was made anew":               {objects: []string{loop("a", "u1", "b", "old"), loop("b", "new", "c", "gone")}, from: []string{"Loop a"}, want: "a"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.objects...)

			for _, from := range tc.from {
				got, err := h.Reconciler.rootOf(t.Context(), h.get(t, from))
				if err != nil || got.Name != tc.want {
					t.Errorf("from %s: %s, %v", from, got.Name, err)
				}
			}
		})
	}
}

func TestOfWhatIsNotWatchedOnlyTheMetadataIsRead(t *testing.T) {
	h := heldBelowClaim(t)
	h.unwatched["Instance"] = true
	h.restart(t)
	h.live = nil

	h.run(t)

	if len(h.writes) > 0 || len(h.live) == 0 {
		t.Errorf("wrote %v, read %v", h.writes, h.live)
	}
}

var _ reconcile.TypedReconciler[Root] = (*Reconciler)(nil)
