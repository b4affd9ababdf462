// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// watches runs one controller per governed kind, and stops it when the kind is
// no longer governed.
type watches struct {
	cache  cache.Cache
	object func(gvk schema.GroupVersionKind) reconcile.Reconciler

	// release lets objects of a kind go that nobody looks at any more.
	release func(ctx context.Context, gvk schema.GroupVersionKind) error

	mu      sync.Mutex
	running map[schema.GroupVersionKind]context.CancelFunc
	// owners are kinds of parents that nobody named.
	owners map[schema.GroupVersionKind]bool
}

// run has the given kinds looked at.
func (w *watches) run(ctx context.Context, kinds []servedKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, k := range kinds {
		if _, ok := w.running[k.gvk]; ok {
			continue
		}

		if err := w.start(ctx, k.gvk); err != nil {
			return err
		}
	}

	return nil
}

// keep has no other kinds looked at than the given ones. What cannot be let go
// of goes on being looked at, and is tried again.
func (w *watches) keep(ctx context.Context, kinds []servedKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	var (
		gone []schema.GroupVersionKind
		errs []error
	)

	// All are stopped first, or one would have objects of another wait again.
	for gvk, stop := range w.running {
		if w.owners[gvk] && len(kinds) > 0 || slices.ContainsFunc(kinds, func(k servedKind) bool { return k.gvk == gvk }) {
			continue
		}

		stop()
		delete(w.running, gvk)

		gone = append(gone, gvk)
	}

	for _, gvk := range gone {
		// In another version the same objects are looked at.
		same := func(k servedKind) bool { return k.gvk.GroupKind() == gvk.GroupKind() }
		if !slices.ContainsFunc(kinds, same) {
			if err := w.release(ctx, gvk); err != nil {
				errs = append(errs, err, w.start(ctx, gvk))

				continue
			}
		}

		if err := w.cache.RemoveInformer(ctx, prototype(gvk)); err != nil {
			errs = append(errs, fmt.Errorf("cannot stop watching %s: %w", gvk, err))
		}
	}

	return errors.Join(errs...)
}

// also has a kind looked at because of what its objects own.
func (w *watches) also(ctx context.Context, gvk schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.owners[gvk] = true

	if _, ok := w.running[gvk]; ok {
		return nil
	}

	return w.start(ctx, gvk)
}

// adopt has the kinds looked at of which objects wait for us since before we
// were started, whether or not anything names them still. Managed resources that
// nothing names are then let go.
func (w *watches) adopt(ctx context.Context, live client.Reader, served []servedKind) error {
	for _, k := range served {
		if k.definition == "" || !waiting(ctx, live, k.gvk) {
			continue
		}

		look := w.also
		if !k.owns {
			look = w.only
		}

		if err := look(ctx, k.gvk); err != nil {
			return err
		}
	}

	return nil
}

// only has a kind looked at until it is known whether anything names it.
func (w *watches) only(ctx context.Context, gvk schema.GroupVersionKind) error {
	return w.run(ctx, []servedKind{{gvk: gvk}})
}

// pageSize is how many objects are listed at once.
const pageSize = 500

// waiting says whether an object of a kind waits for us. One of a kind that
// cannot be listed could not be let go either.
func waiting(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind) bool {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)

	for {
		if err := live.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue())); err != nil {
			log.FromContext(ctx).Info("Cannot tell what waits for us", "kind", gvk.String(), "problem", err.Error())

			return false
		}

		if slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool {
			return slices.Contains(o.GetFinalizers(), v1alpha1.Finalizer)
		}) {
			return true
		}

		if list.GetContinue() == "" {
			return false
		}
	}
}

// kinds are those that are looked at.
func (w *watches) kinds() []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Collect(maps.Keys(w.running))
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

// Fields of every object that patches of ours write.
const (
	keyMetadata    = "metadata"
	keyAnnotations = "annotations"
)

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
	owners  *owners
	ends    *ends
	gated   bool
}

// Reconcile moves the object's gate where it has one, and keeps up its
// annotations as a parent.
func (r *objectReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := prototype(r.gvk)
	if err := r.reader.Get(ctx, req.NamespacedName, u); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) //nolint:wrapcheck // Names the object.
	}

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
		return reconcile.Result{}, r.parents.reconcile(ctx, u)
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
