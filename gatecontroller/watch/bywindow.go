// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// windowSource is where the controller of a kind hears of windows that open gates by
// themselves, for all that they are or were about.
func (w *Watches) windowSource(gvk schema.GroupVersionKind) source.Source {
	enqueue := func(ctx context.Context, q queue, windows ...client.Object) {
		if ctx.Err() != nil {
			return // The kind was released: nothing takes the handler away.
		}

		if err := w.selected(ctx, gvk, windows, func(key client.ObjectKey) { q.Add(reconcile.Request{NamespacedName: key}) }); err != nil {
			log.FromContext(ctx).Error(err, "Cannot tell gates of a window yet")
		}
	}

	return source.Kind(w.cache, client.Object(&v1alpha1.UpgradeAllowance{}), handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if changed(e.ObjectOld, e.ObjectNew) {
				enqueue(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
	})
}

// changed reports whether a window asks for something else, or is in force or not any
// more. That it is used is no news.
func changed(from, to client.Object) bool {
	before, ok := from.(*v1alpha1.UpgradeAllowance)
	now, both := to.(*v1alpha1.UpgradeAllowance)

	return ok && both && (before.GetUID() != now.GetUID() || before.GetGeneration() != now.GetGeneration() ||
		before.Status.Active != now.Status.Active ||
		before.Status.ObservedGeneration != now.Status.ObservedGeneration)
}

// selected passes on what of a kind any of some windows is about.
func (w *Watches) selected(ctx context.Context, gvk schema.GroupVersionKind, windows []client.Object, pass func(client.ObjectKey)) error {
	var about []*v1alpha1.UpgradeAllowance

	for _, obj := range windows {
		if u, ok := obj.(*v1alpha1.UpgradeAllowance); ok && len(gate.GivesBy(u)) > 0 {
			about = append(about, u)
		}
	}

	if len(about) == 0 {
		return nil
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	if err := w.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list %s: %w", gvk, err)
	}

	for i := range list.Items {
		u := &list.Items[i]

		for _, window := range about {
			if management.Governed(u) && allowance.Selects(window, u) {
				pass(client.ObjectKeyFromObject(u))

				break
			}
		}
	}

	return nil
}
