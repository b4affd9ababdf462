// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Leftovers ends ChangeApprovals whose PendingChange is gone, and deletes them when they are old: a
// PendingChange stays for an hour after all is made, and they stay for 30 days.
type Leftovers struct {
	Settler *Settler
}

// Controller makes the controller.
func (l Leftovers) Controller(c cache.Cache, log logr.Logger) (controller.Controller, error) {
	gone := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, pch client.Object) []reconcile.Request {
		list := &v1alpha1.ChangeApprovalList{}

		err := l.Settler.Client.List(ctx, list, client.InNamespace(pch.GetNamespace()), client.MatchingFields{IndexedField: pch.GetName()})
		if err != nil {
			return nil // The index was made, or there would be no controller.
		}

		out := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			out[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
		}

		return out
	})

	deleted := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}

	return object.NewController("leftovers of changeapprovals", l, controller.Options{Logger: log},
		source.Kind(c, client.Object(&v1alpha1.ChangeApproval{}), &handler.EnqueueRequestForObject{}),
		source.Kind(c, client.Object(&v1alpha1.PendingChange{}), gone, deleted))
}

// Reconcile looks at one ChangeApproval.
func (l Leftovers) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	// 1. Has it lost its PendingChange?
	cha := &v1alpha1.ChangeApproval{}
	if err := l.Settler.Client.Get(ctx, req.NamespacedName, cha); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	pch := &v1alpha1.PendingChange{}
	pch.Namespace, pch.Name = cha.Namespace, cha.Spec.PendingChange

	for _, reader := range []client.Reader{l.Settler.Client, l.Settler.Live} { // A cache may not know it yet.
		err := reader.Get(ctx, client.ObjectKeyFromObject(pch), &v1alpha1.PendingChange{})
		if err == nil {
			return reconcile.Result{}, nil // It is looked at with that.
		}

		if !apierrors.IsNotFound(err) {
			return reconcile.Result{}, fmt.Errorf("cannot get PendingChange %q of namespace %q: %w", pch.Name, pch.Namespace, err)
		}
	}

	// 2. Then nothing is held of what it is about.
	again, err := l.Settler.Settle(ctx, nil, pch, &v1alpha1.PendingChangeStatus{})

	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{RequeueAfter: again}, err
	}
}
