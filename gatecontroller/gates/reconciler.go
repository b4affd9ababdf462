// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Reconciler reads one object and hands it to gates and parents.
type Reconciler struct {
	Gvk       schema.GroupVersionKind
	Reader    client.Reader
	Gates     *Mover
	Parents   *Parents
	Owners    *deletion.Owners
	Leftovers *deletion.Leftovers
	// Composed says which kinds and XRs are our business.
	Composed *discovery.Kinds
	// Gateless tells of managed resources without a gate where there should be one; nil for nobody.
	Gateless *Gateless
	// Pending hears of what is there, and what is not; nil for nobody.
	Pending Pending
	Gated   bool
}

// Pending hears of objects for what is held of them.
type Pending interface {
	// Observe hears of one that is there.
	Observe(ctx context.Context, u *unstructured.Unstructured) error
	// Gone hears of one that is not there any more.
	Gone(gk schema.GroupKind, key types.NamespacedName)
}

// Reconcile moves the object's gate where it has one, and maintains its
// annotations as a parent.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := object.New(r.Gvk)

	err := r.Reader.Get(ctx, req.NamespacedName, u)
	if apierrors.IsNotFound(err) {
		r.Gates.Ledger.Gone(r.Gvk.GroupKind(), req.NamespacedName, r.Gates.Now())
		r.Gates.Ungated.Set(r.Gvk, req.NamespacedName, false)
		r.Composed.Forget(r.Gvk)

		if r.Gateless != nil {
			r.Gateless.forget(r.Gvk.GroupKind(), req.NamespacedName)
		}
	}

	told := r.tell(ctx, req.NamespacedName, u, err)

	if err != nil {
		return reconcile.Result{}, errors.Join(client.IgnoreNotFound(err), told)
	}

	r.Composed.Observe(u)

	res, err := r.reconcileObject(ctx, u)
	if err == nil && told != nil {
		return reconcile.Result{}, told
	}

	if err != nil || !r.Gated || r.Gateless == nil {
		return res, err
	}

	again, err := r.Gateless.observe(ctx, u)
	if again > 0 && (res.RequeueAfter == 0 || again < res.RequeueAfter) {
		res.RequeueAfter = again
	}

	return res, err
}

// tell tells of an object that was read, or was not there to be.
func (r *Reconciler) tell(ctx context.Context, key types.NamespacedName, u *unstructured.Unstructured, err error) error {
	switch {
	case r.Pending == nil:
		return nil
	case err == nil:
		return r.Pending.Observe(ctx, u)
	case apierrors.IsNotFound(err):
		r.Pending.Gone(r.Gvk.GroupKind(), key)
	}

	return nil
}

// reconcileObject does what there is to do about an object.
func (r *Reconciler) reconcileObject(ctx context.Context, u *unstructured.Unstructured) (reconcile.Result, error) {
	if object.HasFinalizer(u) && resource.Deleting(u) {
		res, err := r.end(ctx, u)

		return res, client.IgnoreNotFound(err)
	}

	// What becomes of its parent holds up nothing but its deletion.
	var kept error
	if r.Gated && (management.Governed(u) || object.HasFinalizer(u)) {
		kept = r.Owners.EnsureFinalizer(ctx, u)
	}

	res, err := r.reconcileStaying(ctx, u, kept == nil)
	err, kept = client.IgnoreNotFound(err), client.IgnoreNotFound(kept)

	if err != nil || kept == nil || res.RequeueAfter == 0 || object.Outdated(kept) {
		return res, errors.Join(err, kept)
	}

	// An error would have the gate wait for longer and longer.
	log.FromContext(ctx).Error(kept, "A parent cannot be kept until it is known what becomes of its managed resources")

	return reconcile.Result{RequeueAfter: min(res.RequeueAfter, time.Minute)}, nil
}

// reconcileStaying does what there is to do about an object that does not go; its parent may be kept until it knows
// what that means for it, or not yet.
func (r *Reconciler) reconcileStaying(ctx context.Context, u *unstructured.Unstructured, kept bool) (reconcile.Result, error) {
	if !management.Governed(u) {
		err := r.Composed.ReportNotRun(ctx, r.Parents.Writer, u)
		if err != nil && !apierrors.IsForbidden(err) {
			return reconcile.Result{}, err
		}

		if err != nil { // All else goes on.
			log.FromContext(ctx).Error(err, "A right is missing for what is governed")
		}

		if !r.Composed.Governs(u) && !r.Owners.Watches.IsOwner(r.Gvk) {
			return reconcile.Result{}, nil
		}

		return r.Parents.reconcile(ctx, u)
	}

	if !r.Gated {
		return reconcile.Result{}, nil
	}

	res, err := r.Gates.Reconcile(ctx, u, kept)
	if err == nil {
		err = r.Leftovers.EnsureFinalizer(ctx, u)
	}

	return res, err
}

// end does what there is to do before an object that waits for us may go.
func (r *Reconciler) end(ctx context.Context, u *unstructured.Unstructured) (reconcile.Result, error) {
	if !resource.IsManaged(u) {
		waits, err := r.Owners.Release(ctx, u)
		if err != nil || !waits {
			return reconcile.Result{}, err
		}

		return reconcile.Result{RequeueAfter: time.Second}, nil
	}

	if waits, err := r.Leftovers.Release(ctx, u, r.Gated); err != nil || !waits {
		return reconcile.Result{}, err
	}

	return r.Gates.Reconcile(ctx, u, true)
}
