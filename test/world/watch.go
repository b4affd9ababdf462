// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Handler gets a version of an object, and what happened to it.
type Handler func(u *unstructured.Unstructured, event watch.EventType)

// Watch has a handler called with every version of the objects of a kind, until the
// context ends: with those there are, as added, and with what happens to them. It
// begins anew where the API server was away; what happened meanwhile is not seen.
func Watch(ctx context.Context, c client.WithWatch, gvk schema.GroupVersionKind, handle Handler) {
	go func() {
		for ctx.Err() == nil {
			watchOnce(ctx, c, gvk, handle)
			time.Sleep(50 * time.Millisecond)
		}
	}()
}

// watchOnce does so until the watch breaks.
func watchOnce(ctx context.Context, c client.WithWatch, gvk schema.GroupVersionKind, handle Handler) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))

	if err := c.List(ctx, list); err != nil {
		return
	}

	for i := range list.Items {
		handle(&list.Items[i], watch.Added)
	}

	w, err := c.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return
	}

	defer w.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.ResultChan():
			u, isObject := e.Object.(*unstructured.Unstructured)
			if !ok || !isObject || u.GetKind() != gvk.Kind {
				return
			}

			handle(u, e.Type)
		}
	}
}
