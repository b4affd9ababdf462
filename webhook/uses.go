// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/window"
)

// Timing of the counts of windows' uses.
const (
	// flushFirst is how soon a count is written. Whatever is new in a window has
	// Crossplane look again at every XR that it may matter to, so while there is
	// more to count the next write waits twice as long each time, up to
	// flushLongest: as often as Crossplane asks the function again anyway.
	flushFirst   = time.Second
	flushLongest = time.Minute
	// flushTimeout is how long that may take, and the last time at the end.
	flushTimeout = 5 * time.Second
	// flushAgain is how soon, at the end, what could not be written is tried again.
	flushAgain = 100 * time.Millisecond
	// useTimeout is how long a request may take from when we were asked until it
	// is stored: every other webhook may take half of it.
	useTimeout = time.Minute
	// lastUses is how long, at the end, uses are waited for that are still to be
	// stored.
	lastUses = 2 * time.Second
	// mostWatches is how many of them are looked after at once; the others wait.
	mostWatches = 100
)

// Uses counts what windows allow, in their status. A replica counts what it was
// asked about itself, and only once it sees that the API server has stored it:
// when we are asked it may still be refused, or lose against another write and
// be made again.
type Uses struct {
	client client.WithWatch
	log    logr.Logger
	slots  chan struct{}
	// ctx ends when what is still to be stored is not waited for any more.
	ctx    context.Context //nolint:containedctx // Of the process, not of a call.
	cancel context.CancelFunc

	running sync.WaitGroup

	mu sync.Mutex
	// pending are the uses that are not known to be stored.
	pending map[useKey]*pendingUse
	// counts are of those that are.
	counts map[window.Key]*count
}

// count is how often a window was used since that was last written.
type count struct {
	uses int64
	// due is when to write it, and wait how long it then is to the next time.
	due  time.Time
	wait time.Duration
}

// NewUses makes Uses of a client that reads live.
func NewUses(c client.WithWatch, log logr.Logger) *Uses {
	ctx, cancel := context.WithCancel(context.Background())

	return &Uses{
		client: c, log: log, slots: make(chan struct{}, mostWatches), ctx: ctx, cancel: cancel,
		pending: map[useKey]*pendingUse{}, counts: map[window.Key]*count{},
	}
}

// NeedLeaderElection is false: every replica serves.
func (*Uses) NeedLeaderElection() bool { return false }

// Start writes what is counted until the context ends, and then what is left.
func (u *Uses) Start(ctx context.Context) error {
	tick := time.NewTicker(flushFirst / 4)
	defer tick.Stop()

	for {
		select {
		case now := <-tick.C:
			u.flush(ctx, u.due(now, false))
		case <-ctx.Done():
			u.finish(context.WithoutCancel(ctx))

			return nil
		}
	}
}

// finish writes what is left, with what is about to be stored.
func (u *Uses) finish(ctx context.Context) {
	defer u.cancel()
	u.waitForLast()

	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()

	for ctx.Err() == nil {
		left := u.due(time.Now(), true)
		if len(left) == 0 {
			return
		}

		u.flush(ctx, left)
		time.Sleep(flushAgain)
	}
}

// waitForLast waits for uses that are about to be stored.
func (u *Uses) waitForLast() {
	done := make(chan struct{})

	go func() {
		u.running.Wait()
		close(done)
	}()

	select {
	case <-done:
	case <-time.After(lastUses):
	}
}

// Count counts a use of each of its windows.
func (u *Uses) Count(use window.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.count(use)
}

// count does so under the lock.
func (u *Uses) count(use window.Use) {
	for _, w := range use.Windows {
		if u.counts[w] == nil {
			u.counts[w] = &count{due: time.Now().Add(flushFirst), wait: flushFirst}
		}

		u.counts[w].uses++
	}
}

// due returns the counts that are to be written, or all, and forgets windows
// that were not used for as long as their next count would have waited.
func (u *Uses) due(now time.Time, all bool) map[window.Key]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()

	out := map[window.Key]int64{}

	for key, c := range u.counts {
		switch {
		case !all && now.Before(c.due):
		case c.uses == 0:
			delete(u.counts, key)
		default:
			out[key] = c.uses
			c.wait = min(2*c.wait, flushLongest)
			c.due = now.Add(c.wait)
		}
	}

	return out
}

// flush writes counts. What cannot be written is tried again.
func (u *Uses) flush(ctx context.Context, counts map[window.Key]int64) {
	for key, n := range counts {
		if err := u.add(ctx, key, n); err != nil {
			u.log.Error(err, "Cannot count uses of a window yet", "window", key.Name, "uses", n)

			continue
		}

		u.mu.Lock()
		u.counts[key].uses -= n
		u.mu.Unlock()
	}
}

// add adds to the count of a window, to which other replicas add too. One that
// is gone needs none.
func (u *Uses) add(ctx context.Context, key window.Key, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()

	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		was := &v1alpha1.UpgradeAllowance{}
		if err := u.client.Get(ctx, client.ObjectKey{Name: key.Name}, was); err != nil {
			return err //nolint:wrapcheck // Names the object.
		}

		if was.GetUID() != key.UID {
			return nil
		}

		is := was.DeepCopy()
		is.Status.Uses += n

		patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})

		return u.client.Status().Patch(ctx, is, patch, client.FieldOwner(FieldManager)) //nolint:wrapcheck // Names the object.
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot write the status of UpgradeAllowance %q: %w", key.Name, err)
	}

	return nil
}
