// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watches runs one controller per governed kind, and stops it when the kind is
// no longer governed.
type watches struct {
	cache  cache.Cache
	object func(gvk schema.GroupVersionKind) reconcile.Reconciler

	mu      sync.Mutex
	running map[schema.GroupVersionKind]context.CancelFunc
}

// set makes the running controllers those of the given kinds.
func (w *watches) set(ctx context.Context, kinds []servedKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	want := make(map[schema.GroupVersionKind]bool, len(kinds))

	for _, k := range kinds {
		want[k.gvk] = true

		if _, ok := w.running[k.gvk]; ok {
			continue
		}

		if err := w.start(ctx, k.gvk); err != nil {
			return err
		}
	}

	for gvk, stop := range w.running {
		if want[gvk] {
			continue
		}

		stop()
		delete(w.running, gvk)

		if err := w.cache.RemoveInformer(ctx, prototype(gvk)); err != nil {
			return fmt.Errorf("cannot stop watching %s: %w", gvk, err)
		}
	}

	return nil
}

// start runs the controller of one kind until the context ends or it is
// stopped.
func (w *watches) start(ctx context.Context, gvk schema.GroupVersionKind) error {
	skip := true

	c, err := controller.NewUnmanaged(strings.ToLower(gvk.GroupKind().String()), controller.Options{
		Reconciler: w.object(gvk), MaxConcurrentReconciles: concurrency, SkipNameValidation: &skip,
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			l := log.FromContext(ctx).WithValues("kind", gvk.Kind, "group", gvk.Group)
			if req != nil {
				l = l.WithValues("namespace", req.Namespace, "name", req.Name)
			}

			return l
		},
	})
	if err != nil {
		return fmt.Errorf("cannot make a controller for %s: %w", gvk, err)
	}

	src := source.Kind(w.cache, client.Object(prototype(gvk)), &handler.EnqueueRequestForObject{})
	if err := c.Watch(src); err != nil {
		return fmt.Errorf("cannot watch %s: %w", gvk, err)
	}

	// The controller outlives the reconcile that starts it.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.running[gvk] = stop

	go func() {
		if err := c.Start(run); err != nil {
			log.FromContext(ctx).Error(err, "Stopped a controller", "kind", gvk.String())
			w.forget(gvk)
		}
	}()

	return nil
}

// forget lets a controller that failed be started again.
func (w *watches) forget(gvk schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if stop, ok := w.running[gvk]; ok {
		stop()
		delete(w.running, gvk)
	}
}

// stop ends all controllers.
func (w *watches) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()

	for gvk, stop := range w.running {
		stop()
		delete(w.running, gvk)
	}
}

// concurrency is how many objects of one kind are worked on at once.
const concurrency = 10

func prototype(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)

	return u
}

// objectReconciler reads one object and hands it to gates and parents.
type objectReconciler struct {
	gvk     schema.GroupVersionKind
	reader  client.Reader
	gates   *gates
	parents *parents
	gated   bool
}

// Reconcile moves the object's gate where it has one, and keeps up its
// annotations as a parent.
func (r *objectReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := prototype(r.gvk)
	if err := r.reader.Get(ctx, req.NamespacedName, u); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) //nolint:wrapcheck // Names the object.
	}

	var (
		res reconcile.Result
		err error
	)

	if governed(u) {
		if r.gated {
			res, err = r.gates.reconcile(ctx, u)
		}
	} else {
		err = r.parents.reconcile(ctx, u)
	}

	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	default:
		return res, err
	}
}
