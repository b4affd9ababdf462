// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// least and most are how long it takes until a request is tried again that came too early, each time twice as long,
	// and jitter by which part of that it may take longer.
	least  = 50 * time.Millisecond
	most   = 5 * time.Second
	jitter = 0.5
)

// SpecChanged passes on updates of what is asked for, and what was deleted and made again while it was not watched: that is an update,
// too, often of the same generation.
func SpecChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	}}
}

// NewController makes a controller. What its reconciler could not write because the cache is behind it tries again: see
// [Outdated].
func NewController[request comparable](
	name string, r reconcile.TypedReconciler[request], opts controller.TypedOptions[request], sources ...source.TypedSource[request],
) (controller.TypedController[request], error) {
	skip := true // Several managers of a test have one each.
	opts.SkipNameValidation = &skip
	opts.Reconciler = patient[request]{r, workqueue.NewTypedItemExponentialFailureRateLimiter[request](least, most)}

	ctl, err := controller.NewTypedUnmanaged(name, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot make the %s controller: %w", name, err)
	}

	for _, src := range sources {
		if err := ctl.Watch(src); err != nil {
			return nil, fmt.Errorf("cannot have the %s controller watch: %w", name, err)
		}
	}

	return ctl, nil
}

// patient waits for a cache that is behind, longer each time. A newer version of the object comes as an event before
// that.
type patient[request comparable] struct {
	reconcile.TypedReconciler[request]

	tries workqueue.TypedRateLimiter[request]
}

// Reconcile reconciles a request.
func (p patient[request]) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	res, err := p.TypedReconciler.Reconcile(ctx, req)
	if !Outdated(err) {
		p.tries.Forget(req)

		return res, err
	}

	return reconcile.Result{RequeueAfter: wait.Jitter(p.tries.When(req), jitter)}, nil
}
