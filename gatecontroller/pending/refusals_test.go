// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const editedDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a, uid: web, generation: 4, annotations: {
  kausality.io/initialized: '{"v":1}', kausality.io/held: "- {field: spec.replicas, from: '2', cause: {type: Edit, user: anna, since: '2026-03-05T11:00:00Z'}, stored: {}}"}},
  spec: {replicas: 3}, status: {observedGeneration: 4}}`

// refusing is a replica that hears of refusals in the cluster of a harness.
func refusing(h *harness) *Refusals {
	return (&Refusals{
		Client: h.Reconciler.Client, Live: h.client, Namespace: own, Log: logr.Discard(), Now: func() time.Time { return h.now },
	}).Init()
}

// refuse has the Deployment's controller be refused to make a ReplicaSet.
func (h *harness) refuse(t *testing.T, r *Refusals, name string) {
	t.Helper()

	req := &request.Request{
		Operation: request.OperationCreate, Parent: h.get(t, "Deployment web"),
		User: policy.User{Name: "system:serviceaccount:kube-system:deployment-controller"}, Action: v1alpha1.ActionDeny,
		New: fixture.Parse(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: `+name+`, namespace: team-a, ownerReferences: [
			{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}]}}`),
	}
	d := decision.Decide(*req)
	r.Refused(req, &d)
}

// written writes what is heard of, and returns how often it tried.
func (r *Refusals) written(ctx context.Context) int {
	n := 0
	for ; r.queue.Len() > 0; n++ {
		r.next(ctx)
	}

	return n
}

func TestARefusalIsWrittenDownAndTheEditListed(t *testing.T) {
	h := newHarness(t, editedDeployment)
	r := refusing(h)

	// 1. It is written once, however often it is tried.
	for range 3 {
		h.refuse(t, r, "web-1")
	}

	if r.written(t.Context()) == 0 || !slices.Equal(h.writes, []string{"create PendingChange", "patch status PendingChange"}) {
		t.Fatalf("written: %q", h.writes)
	}

	h.writes = nil
	h.refuse(t, r, "web-1")

	if n := r.written(t.Context()); n != 0 || len(h.writes) > 0 {
		t.Errorf("it is written again: %d, %q", n, h.writes)
	}

	// 2. The edit is listed, by what is stored of it.
	h.unwatched["Deployment"] = true
	h.observe(t, "Deployment web")
	h.unwatched["Deployment"] = false

	status := h.pch(t).Status
	if len(status.Changes) != 1 || status.Changes[0].Field != "spec.replicas" || status.Changes[0].To != "3" || status.Changes[0].Digest == "" ||
		!slices.Equal(status.Requesters, []string{"anna"}) || len(status.Refused) != 1 {
		t.Fatalf("%+v", status)
	}

	// 3. What another replica refuses is beside it.
	other := refusing(h)
	h.refuse(t, other, "web-2")
	other.written(t.Context())

	if status = h.pch(t).Status; len(status.Refused) != 2 || len(status.Changes) != 1 {
		t.Fatalf("%+v", status)
	}

	// 4. Once it is taken back all is over.
	u := h.get(t, "Deployment web")
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationInitialized: `{"v":1}`})

	if err := h.client.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}

	h.observe(t, "Deployment web")

	if status = h.pch(t).Status; len(status.Refused)+len(status.Changes) != 0 || status.FinishedAt == nil {
		t.Errorf("%+v", status)
	}
}

func TestARefusalThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	h := newHarness(t, editedDeployment)
	r := refusing(h)
	h.fail["patch status PendingChange"] = fixture.ErrRefused

	h.refuse(t, r, "web-1")
	r.next(t.Context())
	h.refuse(t, r, "web-2")
	delete(h.fail, "patch status PendingChange")

	for len(h.pch(t).Status.Refused) < 2 { // The queue hands it out when its time has come.
		r.next(t.Context())
	}
}

func TestARefusalIsNotWrittenToThePendingChangeOfAnotherObject(t *testing.T) {
	h := newHarness(t, editedDeployment)
	r := refusing(h)

	root := &unstructured.Unstructured{Object: h.get(t, "Deployment web").DeepCopy().Object}
	root.SetUID("before")

	other := pendingChangeOf(root, own)
	if err := h.client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}

	h.refuse(t, r, "web-1")
	r.written(t.Context())

	if status := h.pch(t).Status; len(status.Refused) != 0 {
		t.Errorf("%+v", status)
	}
}

func TestWhatIsHeardOfIsLimited(t *testing.T) {
	h := newHarness(t, editedDeployment)
	r := refusing(h)

	for range maxRefusals + 5 {
		h.refuse(t, r, "web-1")
	}

	if of := r.waiting["web"]; len(of.list) > v1alpha1.MaxPendingRefused {
		t.Errorf("%d wait", len(of.list))
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := r.Start(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
