// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/window"
)

// Timing of the counts of windows' uses.
const (
	// writeEvery is how often a count is written while the window goes on.
	// Crossplane runs the pipeline of every XR that requires a window each time
	// anything is written to that, so a count that follows each use would have all
	// of them composed anew.
	writeEvery = 10 * time.Minute
	// lookEvery is how often it is looked whether a window with uses to be written
	// is over.
	lookEvery = 5 * time.Second
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

// Uses counts what windows allow: at once as a metric, and in their status when
// they are over, and seldom before. A replica counts what it was asked about
// itself, and only once it sees that the API server has stored it: when we are
// asked it may still be refused, or lose against another write and be made
// again.
type Uses struct {
	// Metrics count uses too; nil for none.
	Metrics *Metrics

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
	// due is when to write it though the window goes on.
	due time.Time
	// told is true once an event says that the window is used.
	told bool
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
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()

	for {
		select {
		case <-tick.C:
			u.flush(ctx, false)
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

	for ctx.Err() == nil && u.flush(ctx, true) > 0 {
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
			u.counts[w] = &count{due: time.Now().Add(writeEvery)}
		}

		u.counts[w].uses++
		u.Metrics.used(w.Name)
	}
}

// unwritten are the counts that there is something to write of, in order.
func (u *Uses) unwritten() []window.Key {
	u.mu.Lock()
	defer u.mu.Unlock()

	var out []window.Key

	for key, c := range u.counts {
		if c.uses > 0 {
			out = append(out, key)
		}
	}

	slices.SortFunc(out, func(a, b window.Key) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})

	return out
}

// flush writes the counts of windows that are over, those that are due, or all.
// It returns how many are left; what cannot be written is tried again.
func (u *Uses) flush(ctx context.Context, all bool) int {
	for _, key := range u.unwritten() {
		if err := u.add(ctx, key, all); err != nil {
			u.log.Error(err, "Cannot count uses of a window yet", "window", key.Name)
		}
	}

	return len(u.unwritten())
}

// add adds to the count of a window, to which other replicas add too. One that
// is gone needs none.
func (u *Uses) add(ctx context.Context, key window.Key, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()

	u.mu.Lock()
	now := *u.counts[key]
	u.mu.Unlock()

	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		was := &v1alpha1.UpgradeAllowance{}
		if err := u.client.Get(ctx, client.ObjectKey{Name: key.Name}, was); err != nil {
			return err //nolint:wrapcheck // Names the object.
		}

		if was.GetUID() != key.UID {
			return nil
		}

		if !now.told {
			now.told = u.tell(ctx, was)
		}

		if !all && !toWrite(was, now.due, time.Now()) {
			now.uses = 0 // Nothing is written yet.

			return nil
		}

		is := was.DeepCopy()
		window.Count(is, now.uses, time.Now())

		patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})

		return u.client.Status().Patch(ctx, is, patch, client.FieldOwner(FieldManager)) //nolint:wrapcheck // Names the object.
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of UpgradeAllowance %q: %w", key.Name, err)
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	c := u.counts[key]
	c.uses, c.told = c.uses-now.uses, now.told

	switch {
	case c.uses == 0:
		delete(u.counts, key)
	case now.uses > 0:
		c.due = time.Now().Add(writeEvery)
	}

	return nil
}

// toWrite says whether a count is to be written now: the window is over, or it is
// time, and no other replica has written to it lately.
func toWrite(u *v1alpha1.UpgradeAllowance, at, now time.Time) bool {
	if !now.Before(u.Spec.ValidUntil.Time) {
		return true
	}

	return !now.Before(at) && !slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Subresource == "status" && e.Time != nil && now.Sub(e.Time.Time) < writeEvery
	})
}

// tell records that a window is used, as often as anybody comes to tell it the
// same event. False where that has to be tried again.
func (u *Uses) tell(ctx context.Context, w *v1alpha1.UpgradeAllowance) bool {
	if meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionUsed) {
		return true
	}

	err := client.IgnoreAlreadyExists(u.client.Create(ctx, window.Event(w, window.Used(w), time.Now())))
	if err != nil {
		u.log.Error(err, "Cannot record yet that a window is used", "window", w.GetName())
	}

	return err == nil
}
