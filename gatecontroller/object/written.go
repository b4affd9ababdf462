// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// maxExpected is how many writes are remembered that the cache may not show
	// yet: by far more than there can be in the moment that it takes, but for
	// objects that were gone before.
	maxExpected = 4096
	// catchUp is how long the cache may take to show a write. Versions start over
	// where etcd was restored, and it never would.
	catchUp = 10 * time.Second
)

// Expectations remembers which version of an object a write of ours made, until the
// cache shows it. Planned by what was before, a move would be made again, and be
// refused for its version; and what is new reported again, in other words. controller-runtime
// has none, and those of kube-controller-manager count what is created and deleted.
type Expectations struct {
	mu       sync.Mutex
	versions map[types.UID]version
}

type version struct {
	number string
	since  time.Time
}

// Expect remembers a write.
func (w *Expectations) Expect(uid types.UID, number string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.versions == nil || len(w.versions) >= maxExpected {
		w.versions = map[types.UID]version{}
	}

	w.versions[uid] = version{number: number, since: now}
}

// Behind says for how long at most to wait until a cached object shows our last
// write of it; zero where it does.
func (w *Expectations) Behind(u metav1.Object, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()

	v, ok := w.versions[u.GetUID()]
	if !ok {
		return 0
	}

	left := catchUp - now.Sub(v.since)
	if order, err := resourceversion.CompareResourceVersion(u.GetResourceVersion(), v.number); err == nil && order < 0 && left > 0 {
		return left
	}

	delete(w.versions, u.GetUID())

	return 0
}
