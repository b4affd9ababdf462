// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// history records every version of some objects, to say afterwards what
// happened in which order.
type history struct {
	mu       sync.Mutex
	versions map[string][]*unstructured.Unstructured
	watches  []watch.Interface
}

// record starts to watch Claim, XR, managed resource and external object.
func (s *Scenario) record(ctx context.Context) (*history, error) {
	c, err := dynamic.NewForConfig(s.stack.Config())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	h := &history{versions: map[string][]*unstructured.Unstructured{}}

	for _, o := range []struct {
		resource        schema.GroupVersionResource
		namespace, name string
	}{
		{claimKind().GroupVersion().WithResource("databaseclaims"), claimNamespace, claimName},
		{xrKind().GroupVersion().WithResource("xdatabases"), "", s.xr},
		{mrKind().GroupVersion().WithResource("objects"), "", s.mr},
		{externalKind().GroupVersion().WithResource("configmaps"), s.external.Namespace, s.external.Name},
	} {
		w, err := c.Resource(o.resource).Namespace(o.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + o.name})
		if err != nil {
			h.stop()

			return nil, fmt.Errorf("cannot watch %s: %w", o.resource.Resource, err)
		}

		h.watches = append(h.watches, w)

		go h.follow(w)
	}

	return h, nil
}

func (h *history) follow(w watch.Interface) {
	for e := range w.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}

		h.mu.Lock()
		h.versions[u.GetKind()] = append(h.versions[u.GetKind()], u)
		h.mu.Unlock()
	}
}

func (h *history) stop() {
	for _, w := range h.watches {
		w.Stop()
	}
}

// of returns the versions of the object of a kind, in order.
func (h *history) of(kind string) []*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()

	return append([]*unstructured.Unstructured(nil), h.versions[kind]...)
}

// caughtUp waits until the history has what a live read shows.
func (s *Scenario) caughtUp(ctx context.Context, h *history) error {
	return Eventually(ctx, "watches that have caught up", func(ctx context.Context) error {
		objects, err := s.all(ctx)
		if err != nil {
			return err
		}

		for _, u := range objects {
			versions := h.of(u.GetKind())
			if n := len(versions); n == 0 || versions[n-1].GetResourceVersion() != u.GetResourceVersion() {
				return fmt.Errorf("the watch of %s is behind: %w", u.GetKind(), errOther)
			}
		}

		return nil
	})
}

// find returns the first version of a kind that a check accepts.
func (h *history) find(kind string, accept func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, bool) {
	for _, u := range h.of(kind) {
		if accept(u) {
			return u, true
		}
	}

	return nil, false
}
