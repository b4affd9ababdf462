// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/gatecontroller/shard"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/unmanaged"
)

// Mover has the objects of a namespace reconciled again that moves into the shard
// or out of it.
type Mover struct {
	Shard   *shard.Shard
	Watches *Watches
}

// Reconcile reconciles one namespace.
func (m *Mover) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, m.Watches.enqueueNamespace(ctx, req.Name)
}

// Controller runs the mover.
func (m *Mover) Controller(c cache.Cache, log logr.Logger) (controller.Controller, error) {
	return unmanaged.New("shard", m, controller.Options{Logger: log},
		source.Kind(c, client.Object(shard.Namespace()), &handler.EnqueueRequestForObject{}, m.moved()))
}

// moved passes namespaces whose shard changes, or comes to be known.
func (m *Mover) moved() predicate.Predicate {
	labelled := shard.LabelChanged()
	labelled.CreateFunc = func(e event.CreateEvent) bool {
		return m.Shard.Asked(e.Object.GetName()) || shard.OfNamespace(e.Object) != ""
	}

	return labelled
}
