// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// mover has the objects of a namespace looked at again that moves into the shard
// or out of it.
type mover struct {
	shard   *Shard
	watches *watches
}

// Reconcile looks at one namespace.
func (m *mover) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, m.watches.againIn(ctx, req.Name)
}

// controller runs the mover.
func (m *mover) controller(c cache.Cache, log logr.Logger) (controller.Controller, error) {
	skip := true

	ctl, err := controller.NewUnmanaged("shard", controller.Options{Reconciler: m, SkipNameValidation: &skip, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("cannot make the shard controller: %w", err)
	}

	src := source.Kind(c, client.Object(namespaceKind()), &handler.EnqueueRequestForObject{}, m.moved())
	if err := ctl.Watch(src); err != nil {
		return nil, fmt.Errorf("cannot watch namespaces: %w", err)
	}

	return ctl, nil
}

// moved passes namespaces whose shard changes, or comes to be known.
func (m *mover) moved() predicate.Predicate {
	labelled := relabelled()
	labelled.CreateFunc = func(e event.CreateEvent) bool {
		return m.shard.asked(e.Object.GetName()) || shardOfNamespace(e.Object) != ""
	}

	return labelled
}
