// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Watches runs one controller per governed kind, and stops it when the kind is
// no longer governed.
type Watches struct {
	cache  cache.Cache
	Object func(gvk schema.GroupVersionKind) reconcile.Reconciler

	// Release lets objects of a kind go that nobody reconciles any more.
	Release func(ctx context.Context, gvk schema.GroupVersionKind) error
	// Dropped hears of kinds that nobody reconciles any more.
	Dropped func(gk schema.GroupKind)

	mu      sync.Mutex
	running map[schema.GroupVersionKind]context.CancelFunc
	// queues are those of the controllers that run.
	queues map[schema.GroupVersionKind]queue
	// ended is true once no controller may be started any more.
	ended bool
	// controllers are waited for at the end.
	controllers sync.WaitGroup
	// owners are kinds of parents that nobody named, by when they were last
	// needed.
	owners map[schema.GroupVersionKind]time.Time
	Now    func() time.Time
}

// NewWatches makes Watches of a cache.
func NewWatches(c cache.Cache, now func() time.Time) *Watches {
	return &Watches{
		cache: c, running: map[schema.GroupVersionKind]context.CancelFunc{}, queues: map[schema.GroupVersionKind]queue{},
		owners: map[schema.GroupVersionKind]time.Time{}, Now: now,
	}
}

// Run has the given kinds reconciled.
func (w *Watches) Run(ctx context.Context, kinds []kind.Served) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	var errs []error

	for _, k := range kinds {
		if _, ok := w.running[k.GVK]; ok {
			continue
		}

		errs = append(errs, w.start(ctx, k.GVK))
	}

	return errors.Join(errs...)
}

// Prune has no other kinds reconciled than the given ones. What cannot be released
// of goes on being reconciled, and is tried again.
func (w *Watches) Prune(ctx context.Context, kinds, served []kind.Served) error {
	if err := w.disown(ctx, served); err != nil {
		return err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	var (
		gone []schema.GroupVersionKind
		errs []error
	)

	gated := slices.ContainsFunc(kinds, func(k kind.Served) bool { return k.Managed })

	// All are stopped first, or one would have objects of another wait again.
	for gvk, stop := range w.running {
		if w.owner(gvk) && gated || slices.ContainsFunc(kinds, func(k kind.Served) bool { return k.GVK == gvk }) {
			continue
		}

		w.end(gvk, stop)

		gone = append(gone, gvk)
	}

	for _, gvk := range gone {
		// In another version the same objects are reconciled.
		same := func(k kind.Served) bool { return k.GVK.GroupKind() == gvk.GroupKind() }
		if !slices.ContainsFunc(kinds, same) {
			if err := w.Release(ctx, gvk); err != nil {
				errs = append(errs, err, w.start(ctx, gvk))

				continue
			}

			w.Dropped(gvk.GroupKind())
		}

		if err := w.cache.RemoveInformer(ctx, object.New(gvk)); err != nil {
			errs = append(errs, fmt.Errorf("cannot stop watching %s: %w", gvk, err))
		}
	}

	if !gated {
		errs = append(errs, w.releaseOwners(ctx))
	}

	return errors.Join(errs...)
}

// releaseOwners lets parents go that wait for us though nothing has a gate any
// more, of kinds that are reconciled for another reason: who takes Kausality away
// next must not leave them waiting.
func (w *Watches) releaseOwners(ctx context.Context) error {
	for gvk := range w.owners {
		if _, ok := w.running[gvk]; ok {
			if err := w.Release(ctx, gvk); err != nil {
				return err
			}
		}

		delete(w.owners, gvk)
	}

	return nil
}

// RunOwner has a kind reconciled because of what its objects own.
func (w *Watches) RunOwner(ctx context.Context, gvk schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.owners[gvk] = w.Now()

	if _, ok := w.running[gvk]; ok {
		return nil
	}

	return w.start(ctx, gvk)
}

// ownerIdle is how long a kind of parents goes on being reconciled that nothing
// needs.
const ownerIdle = time.Minute

// disown releases kinds of parents that are no longer served, or of which
// nothing has waited for us for a while.
func (w *Watches) disown(ctx context.Context, served []kind.Served) error {
	w.mu.Lock()
	owners := maps.Clone(w.owners)
	w.mu.Unlock()

	for gvk, last := range owners {
		if slices.ContainsFunc(served, func(k kind.Served) bool { return k.GVK.GroupKind() == gvk.GroupKind() }) {
			items, ok, err := w.List(ctx, gvk)
			if err != nil {
				return err
			}

			waits := slices.ContainsFunc(items, func(u unstructured.Unstructured) bool { return object.HasFinalizer(&u) })
			if !ok || w.Now().Sub(last) < ownerIdle || waits {
				continue
			}
		}

		w.mu.Lock()

		if w.owners[gvk].Equal(last) {
			delete(w.owners, gvk)
		}

		w.mu.Unlock()
	}

	return nil
}

// List returns what is known of a kind's objects, which are not to be modified.
// False where not all of them are known yet.
func (w *Watches) List(ctx context.Context, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, bool, error) {
	w.mu.Lock()
	_, running := w.running[gvk]
	w.mu.Unlock()

	if !running {
		return nil, false, nil
	}

	informer, err := w.cache.GetInformer(ctx, object.New(gvk), cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}

	if err != nil {
		return nil, false, fmt.Errorf("cannot watch %s: %w", gvk, err)
	}

	if !informer.HasSynced() {
		return nil, false, nil
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	if err := w.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("cannot list %s: %w", gvk, err)
	}

	return list.Items, true, nil
}

// errUnknown is the cause while not all objects of a kind are known.
var errUnknown = errors.New("not all of its objects are known yet")

// Named returns the objects of all kinds of a name that are reconciled, in whichever group; they are not to be modified. The error
// says where not all of them are known yet.
func (w *Watches) Named(ctx context.Context, name string) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured

	for _, gvk := range w.Kinds() {
		if gvk.Kind != name {
			continue
		}

		items, known, err := w.List(ctx, gvk)
		if err == nil && !known {
			err = errUnknown
		}

		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", gvk, err)
		}

		out = append(out, items...)
	}

	return out, nil
}

// Known returns the version in which all objects of a kind are in the cache; false where
// they are not, or not yet.
func (w *Watches) Known(ctx context.Context, gk schema.GroupKind) (schema.GroupVersionKind, bool) {
	for _, gvk := range w.Kinds() {
		if gvk.GroupKind() != gk {
			continue
		}

		informer, err := w.cache.GetInformer(ctx, object.New(gvk), cache.BlockUntilSynced(false))
		if err == nil && informer.HasSynced() {
			return gvk, true
		}
	}

	return schema.GroupVersionKind{}, false
}

// owner reports whether a kind is reconciled because of what its objects own.
func (w *Watches) owner(gvk schema.GroupVersionKind) bool {
	_, ok := w.owners[gvk]

	return ok
}

// IsOwner reports whether a kind is reconciled because of what its objects own.
func (w *Watches) IsOwner(gvk schema.GroupVersionKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.owner(gvk)
}

// Kinds are those that are reconciled.
func (w *Watches) Kinds() []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Collect(maps.Keys(w.running))
}

// ErrEnded is the cause when a controller is to be started at the end.
var ErrEnded = errors.New("cannot watch another kind: the manager ends")

// start runs the controller of one kind until the context ends or it is
// stopped.
func (w *Watches) start(ctx context.Context, gvk schema.GroupVersionKind) error {
	if w.ended {
		return ErrEnded
	}

	c, err := object.NewController(strings.ToLower(gvk.GroupKind().String()), w.Object(gvk), controller.Options{
		MaxConcurrentReconciles: concurrency,
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			l := log.FromContext(ctx).WithValues("kind", gvk.Kind, "group", gvk.Group)
			if req != nil {
				l = l.WithValues("namespace", req.Namespace, "name", req.Name)
			}

			return l
		},
	}, source.Kind(w.cache, client.Object(object.New(gvk)), &handler.EnqueueRequestForObject{}), w.enqueueSource(gvk), w.windowSource(gvk))
	if err != nil {
		return err
	}

	// The controller outlives the reconcile that starts it.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.running[gvk] = stop

	w.controllers.Go(func() {
		if err := c.Start(run); err != nil {
			log.FromContext(ctx).Error(err, "Stopped a controller", "kind", gvk.String())
			w.forget(gvk)
		}
	})

	return nil
}

// forget lets a controller that failed be started again.
func (w *Watches) forget(gvk schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if stop, ok := w.running[gvk]; ok {
		w.end(gvk, stop)
	}
}

// end ends one controller.
func (w *Watches) end(gvk schema.GroupVersionKind, stop context.CancelFunc) {
	stop()
	delete(w.running, gvk)
	delete(w.queues, gvk)
}

// Cancel has all controllers end, for good.
func (w *Watches) Cancel() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.ended = true

	for gvk, stop := range w.running {
		w.end(gvk, stop)
	}
}

// Stop ends all controllers, and returns when none writes any more.
func (w *Watches) Stop() {
	w.Cancel()
	w.controllers.Wait()
}

// concurrency is how many objects of one kind are worked on at once.
const concurrency = 10
