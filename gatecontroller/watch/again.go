// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueSource is where a controller is asked from to reconcile objects that nothing
// happened to.
func (w *Watches) enqueueSource(gvk schema.GroupVersionKind) source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		w.mu.Lock()
		defer w.mu.Unlock()

		if _, ok := w.running[gvk]; ok {
			w.queues[gvk] = q
		}

		return nil
	})
}

// Enqueue has objects reconciled though nothing happened to them.
func (w *Watches) Enqueue(gates map[schema.GroupKind][]types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for gvk, q := range w.queues {
		for _, key := range gates[gvk.GroupKind()] {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
}

// EnqueueAll has all objects reconciled that are known by now; of others it is heard.
func (w *Watches) EnqueueAll(ctx context.Context) error {
	keys := map[schema.GroupKind][]types.NamespacedName{}

	for _, gvk := range w.Kinds() {
		items, _, err := w.List(ctx, gvk)
		if err != nil {
			return err
		}

		for i := range items {
			keys[gvk.GroupKind()] = append(keys[gvk.GroupKind()], client.ObjectKeyFromObject(&items[i]))
		}
	}

	w.Enqueue(keys)

	return nil
}
