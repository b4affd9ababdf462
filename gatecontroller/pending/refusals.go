// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

const (
	// maxRefusals is how many refusals wait to be written down. More are left out: they are refused
	// again.
	maxRefusals = 1000
	// writesRefusal is how long one write may take.
	writesRefusal = 10 * time.Second
)

// Refusals writes into PendingChanges what was refused and follows from an edit that nobody
// allowed. Each replica writes what it has refused, whoever leads: nothing of it is stored
// otherwise.
type Refusals struct {
	// Client writes PendingChanges.
	Client client.Client
	// Live reads them from the API server.
	Live client.Reader
	// Namespace of the manager: that of PendingChanges of objects in none.
	Namespace string
	Log       logr.Logger
	Now       func() time.Time

	queue workqueue.TypedRateLimitingInterface[types.UID]
	mu    sync.Mutex
	// waiting are those that are to be written, by root and digest.
	waiting map[types.UID]*refusals
	// noted is when each was written last, by root and digest.
	noted map[types.UID]map[string]v1alpha1.RefusedChange
}

// refusals are those of one root.
type refusals struct {
	root *unstructured.Unstructured
	list []v1alpha1.RefusedChange
}

// Init makes Refusals ready to use.
func (r *Refusals) Init() *Refusals {
	r.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.UID]())
	r.waiting, r.noted = map[types.UID]*refusals{}, map[types.UID]map[string]v1alpha1.RefusedChange{}

	return r
}

// Refused hears of a request that is refused. It does not wait.
func (r *Refusals) Refused(req *request.Request, d *decision.Decision) {
	refusal, ok := pending.Refusal(req, d)
	if !ok {
		return
	}

	uid := req.Parent.GetUID()

	r.mu.Lock()
	defer r.mu.Unlock()

	noted := pending.Noted(r.noted[uid], refusal, r.Now())
	if noted || len(r.waiting) >= maxRefusals {
		return
	}

	of := r.waiting[uid]
	if of == nil {
		of = &refusals{root: reference(req.Parent)}
		r.waiting[uid] = of
	}

	if len(of.list) < v1alpha1.MaxPendingRefused {
		of.list = append(of.list, refusal)
	}

	r.queue.Add(uid)
}

// reference is what is needed of a root.
func reference(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.New(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())

	return out
}

// NeedLeaderElection is false: each replica writes what it has refused.
func (r *Refusals) NeedLeaderElection() bool { return false }

// Start writes what is heard of until the context is done.
func (r *Refusals) Start(ctx context.Context) error {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		for r.next(ctx) {
		}
	}, time.Second)

	<-ctx.Done()
	r.queue.ShutDown()

	return nil
}

// next writes the refusals of one root; false where there are none any more.
func (r *Refusals) next(ctx context.Context) bool {
	uid, done := r.queue.Get()
	if done {
		return false
	}

	defer r.queue.Done(uid)

	r.mu.Lock()
	of := r.waiting[uid]
	delete(r.waiting, uid)
	r.mu.Unlock()

	if of == nil {
		return true
	}

	within, stop := context.WithTimeout(ctx, writesRefusal)
	defer stop()

	if err := r.write(within, of); err != nil {
		r.Log.Info("Cannot write down what was refused; trying again", "kind", of.root.GetKind(), "namespace", of.root.GetNamespace(),
			"name", of.root.GetName(), "cause", err.Error())
		r.back(uid, of)
		r.queue.AddRateLimited(uid)

		return true
	}

	r.queue.Forget(uid)

	return true
}

// back puts refusals back that could not be written.
func (r *Refusals) back(uid types.UID, of *refusals) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if now := r.waiting[uid]; now != nil {
		of.list = append(of.list, now.list...)
		of.list = of.list[:min(len(of.list), v1alpha1.MaxPendingRefused)]
	}

	r.waiting[uid] = of
}

// write writes refusals of one root into its PendingChange.
func (r *Refusals) write(ctx context.Context, of *refusals) error {
	pch, err := r.pendingChange(ctx, of.root)
	if err != nil || pch == nil {
		return err
	}

	out, changed := pch.DeepCopy(), false

	for _, refusal := range of.list {
		list, is := pending.Refuse(out.Status.Refused, refusal, r.Now())
		out.Status.Refused, changed = list, changed || is
	}

	if changed {
		if err := r.Client.Status().Patch(ctx, out, object.MergeFrom(pch), client.FieldOwner(object.FieldManager)); err != nil {
			return fmt.Errorf("cannot write the status of PendingChange %q of namespace %q: %w", pch.Name, pch.Namespace, err)
		}
	}

	r.note(of.root.GetUID(), out.Status.Refused)

	return nil
}

// pendingChange is that of a root, which is made where there is none; nil where it is another
// root's of that name.
func (r *Refusals) pendingChange(ctx context.Context, root *unstructured.Unstructured) (*v1alpha1.PendingChange, error) {
	want := pendingChangeOf(root, r.Namespace)
	pch := &v1alpha1.PendingChange{}

	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), pch)
	if apierrors.IsNotFound(err) {
		pch, err = want, r.Client.Create(ctx, want, client.FieldOwner(object.FieldManager))
	}

	if err != nil {
		return nil, fmt.Errorf("cannot make PendingChange %q of namespace %q: %w", want.Name, want.Namespace, err)
	}

	if pch.Spec.ObjectRef.UID != root.GetUID() {
		return nil, nil //nolint:nilnil // It is of another object of that name.
	}

	return pch, nil
}

// note remembers what a status says, so that what it says is not written again. Of roots that nobody has
// been refused anything of for long nothing is remembered.
func (r *Refusals) note(uid types.UID, list []v1alpha1.RefusedChange) {
	r.mu.Lock()
	defer r.mu.Unlock()

	of := make(map[string]v1alpha1.RefusedChange, len(list))
	for _, refusal := range list {
		of[refusal.Digest] = refusal
	}

	if len(r.noted) >= maxRefusals {
		clear(r.noted)
	}

	r.noted[uid] = of
}
