// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kausality-io/kausality-crossplane/test/patience"
)

// sight is the newest version of each part, by kind; none of what is gone.
type sight map[string]*unstructured.Unstructured

// step is a point in a cycle that can be seen.
type step struct {
	name    string
	reached func(s sight) bool
}

// watcher sees parts as they change.
type watcher struct {
	events  chan event
	watches []watch.Interface
	last    sight
}

type event struct {
	watch.Event

	kind string
}

// watch starts to watch a database.
func (d *database) watch(ctx context.Context) (*watcher, error) { return watchParts(ctx, d.parts()) }

// watchParts starts to watch parts, by kind.
func watchParts(ctx context.Context, parts map[string]part) (*watcher, error) {
	c, err := dynamic.NewForConfig(running.Config())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	w := &watcher{events: make(chan event, 1000), last: sight{}}

	for kind, p := range parts {
		i, err := c.Resource(p.gvr).Namespace(p.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.name})
		if err != nil {
			w.stop()

			return nil, fmt.Errorf("cannot watch %s: %w", p.gvr.Resource, err)
		}

		w.watches = append(w.watches, i)

		go func() {
			for e := range i.ResultChan() {
				w.events <- event{e, kind}
			}
		}()
	}

	return w, nil
}

func (w *watcher) stop() {
	for _, i := range w.watches {
		i.Stop()
	}
}

var errUnseen = errors.New("it was not seen")

// await returns the moment that a step is seen.
func (w *watcher) await(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Limit)
	defer cancel()

	for {
		if s.reached(maps.Clone(w.last)) {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", s.name, errUnseen)
		case e := <-w.events:
			u, ok := e.Object.(*unstructured.Unstructured)

			switch {
			case !ok:
				return fmt.Errorf("%s: the watch of %s broke: %v: %w", s.name, e.kind, e.Object, errUnseen)
			case e.Type == watch.Deleted:
				delete(w.last, e.kind)
			default:
				w.last[e.kind] = u
			}
		}
	}
}
