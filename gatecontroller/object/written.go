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
	// newer is true where the version itself does not suffice.
	newer bool
	since time.Time
}

// Expect remembers the version that a write made.
func (w *Expectations) Expect(uid types.UID, number string, now time.Time) {
	w.put(uid, version{number: number, since: now})
}

// ExpectAfter remembers a version that is not the newest.
func (w *Expectations) ExpectAfter(uid types.UID, number string, now time.Time) {
	w.put(uid, version{number: number, newer: true, since: now})
}

func (w *Expectations) put(uid types.UID, v version) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.versions == nil || len(w.versions) >= maxExpected {
		w.versions = map[types.UID]version{}
	}

	if was, ok := w.versions[uid]; ok {
		if order, err := resourceversion.CompareResourceVersion(v.number, was.number); err == nil && order < 0 {
			return
		} else if err == nil && order == 0 {
			v.newer = v.newer || was.newer
		}
	}

	w.versions[uid] = v
}

// Behind reports whether an object is older than what is remembered of it.
func (w *Expectations) Behind(u metav1.Object, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	v, ok := w.versions[u.GetUID()]
	if !ok {
		return false
	}

	order, err := resourceversion.CompareResourceVersion(u.GetResourceVersion(), v.number)
	if err == nil && (order < 0 || order == 0 && v.newer) && now.Sub(v.since) < catchUp {
		return true
	}

	delete(w.versions, u.GetUID())

	return false
}
