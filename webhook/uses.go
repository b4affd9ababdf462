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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// Timing of the counts of windows' uses.
const (
	// writeEvery is how often a count is written to a window that goes on.
	// Crossplane runs the pipeline of every XR that requires a window each time
	// anything is written to that, and otherwise once a minute: a count that follows
	// each use would have all of them composed anew.
	writeEvery = time.Hour
	// keepEvery is how often a count is put where it outlasts us.
	keepEvery = time.Minute
	// checkEvery is how often it is checked whether there is something to write, and
	// readEvery how often a window is read of which there is not: somebody may have
	// ended it.
	checkEvery = 5 * time.Second
	readEvery  = time.Minute
	// flushTimeout is how long that may take, and the last time at the end.
	flushTimeout = 5 * time.Second
	// flushAgain is how soon, at the end, what could not be written is tried again.
	flushAgain = 100 * time.Millisecond
	// useTimeout is how long a request may take from when we were asked until it
	// is stored: every other webhook may take half of it.
	useTimeout = time.Minute
	// lastUses is how long, at the end, uses are waited for that are still to be
	// stored.
	lastUses = 10 * time.Second
	// maxWatches is how many of them are managed at once; the others wait.
	maxWatches = 100
)

// Uses counts what windows allow: at once as a metric, soon in a Lease, with what
// other replicas count, and in the windows' status when they are over, and seldom
// before. A replica counts what it was asked about itself, and only once it sees
// that the API server has stored it: when we are asked it may still be refused, or
// lose against another write and be made again.
type Uses struct {
	// Metrics count uses too; nil for none.
	Metrics *Metrics

	client client.WithWatch
	tally  tally
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
	counts map[upgradeallowance.Key]*count
}

// count is of one window.
type count struct {
	// uses are those that are not in the tally yet, and late is when they are to
	// be.
	uses int64
	late time.Time
	// due is when to write to the window though it goes on.
	due time.Time
	// reported is true once an event says that the window is used.
	reported bool
	// next is when to read the window again.
	next time.Time
}

// NewUses makes Uses of a client that reads live, and of the Lease in which
// replicas add up.
func NewUses(c client.WithWatch, lease client.ObjectKey, log logr.Logger) *Uses {
	ctx, cancel := context.WithCancel(context.Background())

	return &Uses{
		client: c, tally: tally{client: c, key: lease}, log: log, slots: make(chan struct{}, maxWatches), ctx: ctx, cancel: cancel,
		pending: map[useKey]*pendingUse{}, counts: map[upgradeallowance.Key]*count{},
	}
}

// NeedLeaderElection is false: every replica serves.
func (*Uses) NeedLeaderElection() bool { return false }

// Start writes what is counted until the context ends. It begins with what was
// kept by [Uses.Finish].
func (u *Uses) Start(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()

	var again time.Time

	for {
		if now := time.Now(); !now.Before(again) && ctx.Err() == nil && u.recall(ctx) {
			again = now.Add(writeEvery)
		}

		select {
		case <-tick.C:
			u.flush(ctx, false)
		case <-ctx.Done():
			return nil
		}
	}
}

// Finish keeps what is left for who comes next, with what is about to be stored.
// To be called once nothing is asked any more: the webhook serves after Start has
// returned.
func (u *Uses) Finish(ctx context.Context) {
	if u == nil {
		return
	}

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
func (u *Uses) Count(use upgradeallowance.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.count(use)
}

// count does so under the lock.
func (u *Uses) count(use upgradeallowance.Use) {
	for _, w := range use.Windows {
		u.counted(w).uses++
		u.Metrics.used(w.Name)
	}
}

// counted is the count of a window, under the lock.
func (u *Uses) counted(key upgradeallowance.Key) *count {
	if u.counts[key] == nil {
		now := time.Now()
		u.counts[key] = &count{late: now.Add(keepEvery), due: now.Add(writeEvery)}
	}

	return u.counts[key]
}

// used are the windows that there may be something to write of, in order: those
// whose time has come, or all.
func (u *Uses) used(all bool) []upgradeallowance.Key {
	u.mu.Lock()
	defer u.mu.Unlock()

	var out []upgradeallowance.Key

	for key, c := range u.counts {
		if all || !time.Now().Before(c.next) {
			out = append(out, key)
		}
	}

	slices.SortFunc(out, func(a, b upgradeallowance.Key) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})

	return out
}

// flush writes the counts of windows that are over, and of others what is due, or
// all that has to be kept. It returns how many could not be written; they are
// tried again.
func (u *Uses) flush(ctx context.Context, all bool) int {
	failed := 0

	for _, key := range u.used(all) {
		if err := u.write(ctx, key, all); err != nil {
			failed++

			u.log.Error(err, "Cannot count uses of a window yet", "window", key.Name)
		}
	}

	return failed
}

// write writes the count of a window. Of one that is gone there is nothing to
// write.
func (u *Uses) write(ctx context.Context, key upgradeallowance.Key, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()

	w := &v1alpha1.UpgradeAllowance{}

	err := u.client.Get(ctx, client.ObjectKey{Name: key.Name}, w)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot get UpgradeAllowance %q: %w", key.Name, err)
	}

	u.mu.Lock()

	if err != nil || w.GetUID() != key.UID {
		delete(u.counts, key)
		u.mu.Unlock()

		return nil
	}

	now := *u.counts[key]
	u.mu.Unlock()

	if !now.reported {
		now.reported = u.recordUsed(ctx, w)
	}

	// 1. To the others'.
	publish := toWrite(w, now.due, time.Now())
	keep := publish || now.uses > 0 && (all || !time.Now().Before(now.late))

	var sum int64

	if keep {
		if sum, err = u.tally.add(ctx, key.UID, w.Status.Uses, now.uses); err != nil {
			return err
		}
	}

	u.wrote(key, now, keep, w)

	// 2. Where everybody sees it, and all are woken.
	if !publish {
		return nil
	}

	if err := u.publish(ctx, key, sum); err != nil {
		return err
	}

	u.published(key, w)

	return nil
}

// wrote notes what is reported of a window, and kept, and when to read it again.
func (u *Uses) wrote(key upgradeallowance.Key, was count, kept bool, w *v1alpha1.UpgradeAllowance) {
	u.mu.Lock()
	defer u.mu.Unlock()

	c := u.counts[key]
	c.reported = was.reported

	if kept {
		c.uses -= was.uses
		c.late = time.Now().Add(keepEvery)
	}

	if !c.reported {
		return
	}

	again := []time.Time{time.Now().Add(readEvery), w.Spec.ValidUntil.Time}
	if c.uses > 0 {
		again = append(again, c.late)
	}

	c.next = slices.MinFunc(again, time.Time.Compare)
}

// recordUsed records that a window is used, as often as anybody reports it to the
// same event. False where that has to be tried again.
func (u *Uses) recordUsed(ctx context.Context, w *v1alpha1.UpgradeAllowance) bool {
	if meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionUsed) {
		return true
	}

	err := client.IgnoreAlreadyExists(u.client.Create(ctx, upgradeallowance.Event(w, upgradeallowance.Used(w), time.Now())))
	if err != nil {
		u.log.Error(err, "Cannot record yet that a window is used", "window", w.GetName())
	}

	return err == nil
}
