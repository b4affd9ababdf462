// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
)

// unusedAfter is how long a grant to delete may be there before the object is
// deleted: the webhook writes it while the API server waits for its answer, and
// after that for those of others, at most 30 s each.
//
// Source: k8s.io/kubernetes pkg/apis/admissionregistration/validation.
const unusedAfter = time.Minute

// Unused remembers since when objects carry what their deletion gives, and are
// not deleted.
type Unused struct {
	now func() time.Time

	mu    sync.Mutex
	since map[types.UID]time.Time
}

// NewUnused makes Unused by a clock.
func NewUnused(now func() time.Time) *Unused {
	return &Unused{now: now, since: map[types.UID]time.Time{}}
}

// check returns the annotations to write where a deletion was asked for and did
// not happen, or when to check again.
func (n *Unused) check(u *unstructured.Unstructured) (map[string]any, time.Duration) {
	over := stamp.Unused(u)

	n.mu.Lock()
	defer n.mu.Unlock()

	if len(over) == 0 {
		delete(n.since, u.GetUID())

		return nil, 0
	}

	since, known := n.since[u.GetUID()]
	if !known {
		since = n.now()
		maps.DeleteFunc(n.since, func(_ types.UID, t time.Time) bool { return since.Sub(t) > time.Hour }) // Gone unseen.
		n.since[u.GetUID()] = since
	}

	if left := unusedAfter - n.now().Sub(since); left > 0 {
		return nil, left
	}

	out := map[string]any{}

	for key, value := range over {
		if out[key] = nil; value != "" {
			out[key] = value
		}
	}

	return out, unusedAfter
}
