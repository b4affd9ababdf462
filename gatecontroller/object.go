// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// objectReconciler reads one object and hands it to gates and parents.
type objectReconciler struct {
	gvk     schema.GroupVersionKind
	reader  whole
	shard   *Shard
	gates   *gates
	parents *parents
	owners  *owners
	ends    *ends
	// composed says which kinds and XRs are our business.
	composed *composed
	gated    bool
}

// Reconcile moves the object's gate where it has one, and keeps up its
// annotations as a parent.
func (r *objectReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	gk := r.gvk.GroupKind()
	mine := r.shard.has(req.Namespace)

	u := prototype(r.gvk)

	err := r.reader.get(ctx, req.NamespacedName, u, mine)

	switch {
	case !mine:
		r.gates.ledger.drop(gk, req.NamespacedName)
	case apierrors.IsNotFound(err):
		r.gates.ledger.gone(gk, req.NamespacedName, r.gates.now())
		r.gates.ungated.set(r.gvk, req.NamespacedName, false)
		r.composed.gone(r.gvk)
	}

	if err != nil || !mine && elsewhere(u) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	r.composed.look(u)

	res, err := r.look(ctx, u)

	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	default:
		return res, err
	}
}

// look does what there is to do about an object.
func (r *objectReconciler) look(ctx context.Context, u *unstructured.Unstructured) (reconcile.Result, error) {
	if kept(u) && resource.Deleting(u) {
		return r.end(ctx, u)
	}

	if r.gated && (gate.Governed(u) || kept(u)) {
		if err := r.owners.keep(ctx, u); err != nil {
			return reconcile.Result{}, err
		}
	}

	if !gate.Governed(u) {
		err := r.composed.tellNotRun(ctx, r.parents.client, u)
		if err != nil && !apierrors.IsForbidden(err) {
			return reconcile.Result{}, err
		}

		if err != nil { // All else goes on.
			log.FromContext(ctx).Error(err, "A right is missing for what is governed")
		}

		if !r.composed.minds(u) && !r.owners.watches.minds(r.gvk) {
			return reconcile.Result{}, nil
		}

		return r.parents.reconcile(ctx, u)
	}

	if !r.gated {
		return reconcile.Result{}, nil
	}

	res, err := r.gates.reconcile(ctx, u)
	if err == nil {
		err = r.ends.keep(ctx, u)
	}

	return res, err
}

// end does what there is to do before an object that waits for us may go.
func (r *objectReconciler) end(ctx context.Context, u *unstructured.Unstructured) (reconcile.Result, error) {
	if !resource.IsManaged(u) {
		return reconcile.Result{}, r.owners.letGo(ctx, u)
	}

	if waits, err := r.ends.letGo(ctx, u, r.gated); err != nil || !waits {
		return reconcile.Result{}, err
	}

	return r.gates.reconcile(ctx, u)
}
