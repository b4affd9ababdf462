// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Approvals makes of ChangeApprovals what they come to.
type Approvals interface {
	// Settle completes a status that says what is held: by approvals, the conditions Approved and
	// Applied, and no FinishedAt as long as something is under way. It writes what approvals
	// grant, and says when it is to be called again though nothing happens; zero for never.
	Settle(ctx context.Context, root *unstructured.Unstructured, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus) (
		again time.Duration, err error)
}

// keptFor is how long a PendingChange stays of which nothing is held.
const keptFor = time.Hour

// Reconciler keeps PendingChanges: each request is a root.
type Reconciler struct {
	// Client reads PendingChanges from the cache, and writes them.
	Client  client.Client
	Objects Objects
	// Composes reports whether XRs of a kind run the function.
	Composes func(gk schema.GroupKind) bool
	// Approvals are those of changes; nil for none.
	Approvals Approvals
	// Namespace of the manager: that of PendingChanges of objects in none.
	Namespace string
	// ShowForeign shows values of objects in other namespaces than their root's.
	ShowForeign bool
	// WithoutDrift are kinds of which drift is not looked for.
	WithoutDrift management.Kinds
	Now          func() time.Time

	metrics   *Metrics
	index     *index
	functions functions
}

// Init makes a Reconciler ready to use, which counts in metrics.
func (r *Reconciler) Init(m *Metrics) *Reconciler {
	r.index, r.metrics = newIndex(), m
	m.index.Store(r.index)

	return r
}

// Reconcile brings the PendingChange of one root up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req Root) (reconcile.Result, error) {
	root, err := r.Objects.read(ctx, referenceByKey(req), true)
	if errors.Is(err, object.ErrGone) || errors.Is(err, errUnread) {
		return reconcile.Result{}, r.leave(ctx, req)
	}

	if err != nil {
		return reconcile.Result{}, err
	}

	top, err := r.rootOf(ctx, root)
	if err != nil {
		return reconcile.Result{}, err
	}

	res := reconcile.Result{}

	switch key := pending.KeyOfObject(root); {
	case key != req: // Whoever referred to it named a namespace, and its kind has none.
	case top == req:
		res, err = r.reconcileRoot(ctx, root)
	default:
		err = r.demote(ctx, root)
	}

	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, nil // Nothing new comes to be there.
	}

	return res, err
}

// leave forgets a root that is gone, of which the garbage collector takes the PendingChange. What
// was below it, and stays, has another one.
func (r *Reconciler) leave(ctx context.Context, root Root) error {
	below := r.index.of(root)
	r.index.forget(root)

	for _, key := range below {
		if key == root {
			continue
		}

		u, err := r.Objects.read(ctx, referenceByKey(key), false)
		if errors.Is(err, object.ErrGone) || errors.Is(err, errUnread) {
			continue
		}

		if err == nil {
			err = r.Observe(ctx, u)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// demote leaves an object that has a parent by now: what is held of it and below is the business of
// another root.
func (r *Reconciler) demote(ctx context.Context, u *unstructured.Unstructured) error {
	pch, err := r.present(ctx, u)
	if err != nil {
		return err
	}

	if pch != nil {
		if err := r.remove(ctx, pch); err != nil {
			return err
		}
	}

	if err := r.leave(ctx, pending.KeyOfObject(u)); err != nil {
		return err
	}

	return r.Observe(ctx, u)
}

func (r *Reconciler) reconcileRoot(ctx context.Context, root *unstructured.Unstructured) (reconcile.Result, error) {
	// 1. What is there?
	pch, err := r.present(ctx, root)
	if err != nil {
		return reconcile.Result{}, err
	}

	now := r.Now()

	switch {
	case pch == nil:
	case pch.DeletionTimestamp != nil:
		return reconcile.Result{}, nil // Likewise.
	case pch.Spec.ObjectRef.UID != root.GetUID():
		return reconcile.Result{}, r.remove(ctx, pch) // Once it is gone it is made anew.
	}

	// 2. What is held?
	if root, err = r.whole(ctx, root, pch); err != nil || root == nil {
		return reconcile.Result{}, err
	}

	in := pending.Input{Root: root, ShowForeign: r.ShowForeign, WithoutDrift: r.WithoutDrift, Now: now}
	if pch != nil {
		in.Previous = pch.Status
	}

	g, err := r.gather(ctx, root, &in.Previous)
	if err != nil {
		return reconcile.Result{}, err
	}

	in.Objects, in.Gone = g.objects(), g.gone
	status := pending.Status(in)
	r.hint(ctx, in.Objects, &in.Previous, &status)

	carried := r.carried(in.Objects, in.Previous.Approvals)

	// 3. Write what is new.
	if pch == nil && status.Total+int32(len(carried)) == 0 { //nolint:gosec // They fit.
		r.index.settle(pending.KeyOfObject(root), time.Time{})

		return reconcile.Result{}, nil
	}

	if pch == nil {
		if pch, err = r.create(ctx, root); err != nil {
			return reconcile.Result{}, err
		}
	}

	again, settled := r.settle(ctx, root, withCarried(pch, carried), &status)

	if err := errors.Join(settled, r.write(ctx, pch, &status)); err != nil {
		return reconcile.Result{}, err
	}

	// 4. Let it go when it is over.
	r.index.settle(pending.KeyOfObject(root), oldest(pch, &status))

	if status.FinishedAt == nil {
		return reconcile.Result{RequeueAfter: again}, nil
	}

	return r.expire(ctx, pch, keptFor-now.Sub(status.FinishedAt.Time), again)
}

// whole is a root with all that counts of it: where edits of it can be approved that is their values, which
// the cache may not have. Nil where it is gone, which is heard of.
func (r *Reconciler) whole(
	ctx context.Context, root *unstructured.Unstructured, pch *v1alpha1.PendingChange,
) (*unstructured.Unstructured, error) {
	if pch == nil || len(pch.Status.Refused) == 0 {
		return root, nil
	}

	live, err := r.Objects.live(ctx, referenceTo(pch.Spec.ObjectRef), true)

	switch {
	case object.IsGone(err), errors.Is(err, object.ErrGone):
		return nil, nil //nolint:nilnil // As said above.
	case err != nil:
		return nil, fmt.Errorf("cannot get %s %q: %w", pch.Spec.ObjectRef.Kind, pch.Spec.ObjectRef.Name, err)
	default:
		return live, nil
	}
}

// carried are the approvals of which an object carries what they grant, though none that was named
// before tells of it: somebody has deleted the PendingChange, or it was another root's.
func (r *Reconciler) carried(objects []pending.Object, named []v1alpha1.PendingApproval) []v1alpha1.PendingApproval {
	var out []v1alpha1.PendingApproval

	for i := range objects {
		u := objects[i].Unstructured
		if r.Approvals == nil || !allowance.CarriesApproval(u) {
			continue
		}

		list, err := allowance.Parse(u)
		if err != nil {
			continue // Whoever writes it next reports it.
		}

		for _, a := range list {
			if !allowance.OfApproval(a) || allowance.External(a) || slices.ContainsFunc(named, func(n v1alpha1.PendingApproval) bool {
				return n.Digest == a.Digest && n.Parent != nil && n.Parent.UID == u.GetUID() && !n.State.Final()
			}) {
				continue
			}

			parent := pending.RefTo(u)
			out = append(out, v1alpha1.PendingApproval{
				Digest: a.Digest, Parent: &parent, Field: a.Mutation, User: a.Initiator, State: v1alpha1.ApprovalStateGranted,
			})
		}
	}

	return out
}

// withCarried is a PendingChange that names these approvals, too.
func withCarried(pch *v1alpha1.PendingChange, carried []v1alpha1.PendingApproval) *v1alpha1.PendingChange {
	if len(carried) > 0 {
		pch = pch.DeepCopy()
		pch.Status.Approvals = append(pch.Status.Approvals, carried...)
	}

	return pch
}

// expire deletes a PendingChange that has nothing left to stay for, or has that done later; before
// that, if it is not zero, again.
func (r *Reconciler) expire(ctx context.Context, pch *v1alpha1.PendingChange, left, again time.Duration) (reconcile.Result, error) {
	switch {
	case left <= 0:
		return reconcile.Result{}, r.remove(ctx, pch)
	case again > 0:
		left = min(left, again)
	}

	return reconcile.Result{RequeueAfter: left}, nil
}

// present is the PendingChange of a root; nil for none.
func (r *Reconciler) present(ctx context.Context, root *unstructured.Unstructured) (*v1alpha1.PendingChange, error) {
	key := client.ObjectKeyFromObject(r.named(root))
	pch := &v1alpha1.PendingChange{}

	switch err := r.Client.Get(ctx, key, pch); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // As said above.
	case err != nil:
		return nil, fmt.Errorf("cannot get PendingChange %q of namespace %q: %w", key.Name, key.Namespace, err)
	default:
		return pch, nil
	}
}

func (r *Reconciler) named(root *unstructured.Unstructured) *v1alpha1.PendingChange {
	return pendingChangeOf(root, r.Namespace)
}

func (r *Reconciler) create(ctx context.Context, root *unstructured.Unstructured) (*v1alpha1.PendingChange, error) {
	pch := r.named(root)
	if err := r.Client.Create(ctx, pch, client.FieldOwner(object.FieldManager)); err != nil {
		return nil, fmt.Errorf("cannot create PendingChange %q of namespace %q: %w", pch.Name, pch.Namespace, err)
	}

	r.metrics.writes.Inc()
	log.FromContext(ctx).Info("Something is held", "pendingChange", pch.Name, "inNamespace", pch.Namespace)

	return pch, nil
}

// settle has approvals completed. Where that fails, what is held is written all the same.
func (r *Reconciler) settle(
	ctx context.Context, root *unstructured.Unstructured, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus,
) (time.Duration, error) {
	if r.Approvals == nil {
		return 0, nil
	}

	out := status.DeepCopy()

	again, err := r.Approvals.Settle(ctx, root, pch, out)
	if err != nil {
		status.FinishedAt = pch.Status.FinishedAt // Something may be under way.

		return 0, fmt.Errorf("cannot settle approvals of PendingChange %q of namespace %q: %w", pch.Name, pch.Namespace, err)
	}

	*status = *out

	return again, nil
}

// write writes a status that is another one than that which is there.
func (r *Reconciler) write(ctx context.Context, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus) error {
	same, err := equal(&pch.Status, status)
	if err != nil || same {
		return err
	}

	out := pch.DeepCopy()
	out.Status = *status

	err = r.Client.Status().Patch(ctx, out, object.MergeFrom(pch), client.FieldOwner(object.FieldManager))
	if apierrors.IsNotFound(err) {
		return nil // It is heard of again once the cache shows that it is gone.
	}

	if err != nil {
		return fmt.Errorf("cannot write the status of PendingChange %q of namespace %q: %w", pch.Name, pch.Namespace, err)
	}

	r.metrics.writes.Inc()

	return nil
}

// equal compares what is written of two statuses.
func equal(a, b *v1alpha1.PendingChangeStatus) (bool, error) {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)

	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("cannot encode a status: %w", err)
	}

	return bytes.Equal(x, y), nil
}

// remove deletes a PendingChange that nobody has changed since it was read.
func (r *Reconciler) remove(ctx context.Context, pch *v1alpha1.PendingChange) error {
	err := r.Client.Delete(ctx, pch, client.Preconditions{UID: new(pch.GetUID()), ResourceVersion: new(pch.GetResourceVersion())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete PendingChange %q of namespace %q: %w", pch.Name, pch.Namespace, err)
	}

	r.metrics.writes.Inc()

	return nil
}

// oldest is since when something is held or under way; zero where nothing is.
func oldest(pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus) time.Time {
	if status.FinishedAt != nil {
		return time.Time{}
	}

	out := pch.CreationTimestamp.Time

	for i, e := range status.Changes {
		if since := e.Cause.Since; i == 0 || since.Time.Before(out) {
			out = since.Time
		}
	}

	return out
}
