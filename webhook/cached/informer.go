// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

const (
	// maxLost is how long an informer may be without a watch, and still be allowed
	// by: a watch that ends is begun again at once while the API server is there.
	maxLost = 30 * time.Second
	// maxSilent is how long a watch may say nothing. The API server sends a bookmark
	// each minute where there is nothing else.
	//
	// Source: k8s.io/apiserver pkg/storage/cacher/cacher.go, defaultBookmarkFrequency.
	maxSilent = 150 * time.Second
)

// NewInformer makes an informer that knows since when it may be behind.
func NewInformer(
	lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	heard := &contact{lw: toolscache.ToListerWatcherWithContext(lw), now: time.Now}

	return &aware{SharedIndexInformer: toolscache.NewSharedIndexInformer(heard, obj, resync, indexers), contact: heard}
}

// aware is an informer that knows since when it may be behind.
type aware struct {
	toolscache.SharedIndexInformer

	contact *contact
}

// Stale reports whether nothing was heard of the API server for so long that what
// is known must not be allowed by.
func (a *aware) Stale() bool { return a.contact.stale() }

// contact lists and watches, and notes when it last heard of the API server.
type contact struct {
	lw  toolscache.ListerWatcherWithContext
	now func() time.Time

	mu    sync.Mutex
	heard time.Time
	// watching is true while a watch is open.
	watching bool
}

var _ toolscache.ListerWatcherWithContext = (*contact)(nil)

func (c *contact) stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	limit := maxLost
	if c.watching {
		limit = maxSilent
	}

	return c.now().Sub(c.heard) > limit
}

func (c *contact) note(watching bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.heard, c.watching = c.now(), watching
}

// lost notes that a watch has ended: since it was last heard of, anything may
// have happened.
func (c *contact) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.watching = false
}

// IsWatchListSemanticsUnSupported reports whether what is wrapped cannot list by a
// watch.
func (c *contact) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.lw)
}

// List implements toolscache.Lister.
func (c *contact) List(opts metav1.ListOptions) (runtime.Object, error) {
	return c.ListWithContext(context.Background(), opts)
}

// Watch implements toolscache.Watcher.
func (c *contact) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return c.WatchWithContext(context.Background(), opts)
}

// ListWithContext implements toolscache.ListerWithContext.
func (c *contact) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.lw.ListWithContext(ctx, opts)
	if err == nil {
		c.note(false)
	}

	return list, err
}

// WatchWithContext implements toolscache.WatcherWithContext.
func (c *contact) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	w, err := c.lw.WatchWithContext(ctx, opts)
	if err != nil {
		c.lost()

		return nil, err
	}

	c.note(true)

	out := &overheard{Interface: w, events: make(chan watch.Event), stopped: make(chan struct{})}
	go out.forward(c)

	return out, nil
}

// overheard is a watch whose events are noted.
type overheard struct {
	watch.Interface

	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan implements watch.Interface.
func (o *overheard) ResultChan() <-chan watch.Event { return o.events }

// Stop implements watch.Interface.
func (o *overheard) Stop() {
	o.once.Do(func() { close(o.stopped) })
	o.Interface.Stop()
}

// forward hands events on until the watch ends. What comes before the first
// error is heard of the API server.
func (o *overheard) forward(c *contact) {
	defer close(o.events)
	defer c.lost()

	for e := range o.Interface.ResultChan() {
		if e.Type != watch.Error {
			c.note(true)
		}

		select {
		case o.events <- e:
		case <-o.stopped:
			return
		}
	}
}
