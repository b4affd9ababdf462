// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/engine/pending"
)

type queue = workqueue.TypedRateLimitingInterface[Root]

// index knows which objects have something held, and below which root. It has no more of them
// than their names and a fingerprint.
type index struct {
	mu sync.Mutex
	// objects are those that have something held, or that an open PendingChange is about.
	objects map[pending.Key]*entry
	// below are the objects of each root.
	below map[Root]map[pending.Key]bool
	// parents are the objects of roots by UID, of which others may be the parent.
	parents map[types.UID]pending.Key
	// open are the roots of which something is held or under way.
	open map[Root]time.Time
	// queue takes requests; nil before the controller runs, and waiting are those until then.
	queue   queue
	waiting map[Root]bool
}

// entry is one object.
type entry struct {
	root Root
	uid  types.UID
	// holds is true where something is held of it.
	holds bool
	// said is what it said last.
	said fingerprint
}

func newIndex() *index {
	return &index{
		objects: map[pending.Key]*entry{}, below: map[Root]map[pending.Key]bool{}, parents: map[types.UID]pending.Key{},
		open: map[Root]time.Time{}, waiting: map[Root]bool{},
	}
}

// source is where the controller takes requests from.
func (x *index) source() source.TypedSource[Root] {
	return source.TypedFunc[Root](func(_ context.Context, q queue) error {
		x.mu.Lock()
		defer x.mu.Unlock()

		x.queue = q

		for root := range x.waiting {
			q.Add(root)
		}

		clear(x.waiting)

		return nil
	})
}

// ask has roots reconciled. The lock is held.
func (x *index) ask(roots ...Root) {
	for _, root := range roots {
		if x.queue != nil {
			x.queue.Add(root)
		} else {
			x.waiting[root] = true
		}
	}
}

// known returns what was seen last of an object; false for nothing.
func (x *index) known(key pending.Key) (entry, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if e := x.objects[key]; e != nil {
		return *e, true
	}

	return entry{}, false
}

// involved reports whether an object is one of a root's of which something is held or under way,
// or a child of one.
func (x *index) involved(key pending.Key, parent types.UID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()

	if _, ok := x.objects[key]; ok {
		return true
	}

	of, ok := x.parents[parent]

	return ok && parent != "" && x.objects[of] != nil
}

// set remembers an object, and asks for its root, and for that which it had before.
func (x *index) set(key pending.Key, e entry) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if was := x.objects[key]; was != nil && was.root != e.root {
		x.ask(was.root)
	}

	x.put(key, e)
	x.ask(e.root)
}

// put remembers an object. The lock is held.
func (x *index) put(key pending.Key, e entry) {
	x.remove(key)

	x.objects[key] = &e
	if x.below[e.root] == nil {
		x.below[e.root] = map[pending.Key]bool{}
	}

	x.below[e.root][key] = true

	if e.uid != "" {
		x.parents[e.uid] = key
	}
}

// remove forgets an object. The lock is held.
func (x *index) remove(key pending.Key) {
	was := x.objects[key]
	if was == nil {
		return
	}

	delete(x.objects, key)
	delete(x.parents, was.uid)
	delete(x.below[was.root], key)

	if len(x.below[was.root]) == 0 {
		delete(x.below, was.root)
	}
}

// gone forgets an object, and asks for its root.
func (x *index) gone(key pending.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if was := x.objects[key]; was != nil {
		x.remove(key)
		x.ask(was.root)
	}
}

// follow has changes of an object heard of, if it is not known yet: it is about to be read.
func (x *index) follow(root Root, key pending.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if x.objects[key] == nil {
		x.put(key, entry{root: root})
	}
}

// identify notes the UID of an object that was read.
func (x *index) identify(key pending.Key, uid types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if e := x.objects[key]; e != nil && e.uid != uid {
		delete(x.parents, e.uid)
		e.uid = uid
		x.parents[uid] = key
	}
}

// of are the objects of a root, in order.
func (x *index) of(root Root) []pending.Key {
	x.mu.Lock()
	defer x.mu.Unlock()

	return slices.SortedFunc(maps.Keys(x.below[root]), pending.CompareKeys)
}

// settle notes since when something of a root is held or under way. The zero time is for nothing:
// then no more is remembered than what has something held all the same.
func (x *index) settle(root Root, since time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if !since.IsZero() {
		x.open[root] = since

		return
	}

	delete(x.open, root)

	for key := range maps.Clone(x.below[root]) {
		if !x.objects[key].holds {
			x.remove(key)
		}
	}
}

// forget forgets all of a root.
func (x *index) forget(root Root) {
	x.mu.Lock()
	defer x.mu.Unlock()

	delete(x.open, root)

	for key := range maps.Clone(x.below[root]) {
		x.remove(key)
	}
}
