// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package quiet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// envXRs names the environment variable that says how many composite resources there
// are that nobody touches; world.EnvSeed decides who is changed when.
const envXRs = "KAUSALITY_XRS"

const (
	// xrs is how many there are by default.
	xrs = 30
	// periods is how often the pipelines of each of them run while it is counted
	// with nothing going on, and while there is; where they run seldom, for as long
	// as longest.
	periods = 8
	longest = 6 * time.Minute
	// most is how much more often they may run then.
	most = 1.05
	// perSecond is how many of the pipelines are to run in a second, and ttlMost
	// how long one waits at most until it is run again: as long as it does by
	// default.
	perSecond         = 4
	ttlLeast, ttlMost = 8 * time.Second, time.Minute
)

// processOther is the manager that goes on when the first is restarted.
const processOther = "kausality-manager-2"

// TestCompositeResourcesThatNobodyTouchesAreLeftAlone has a fleet of composite
// resources that settled and that nobody touches. Others of their kind are
// changed all the time: by who may, through a window, and in vain; and one of the
// managers is restarted. Of some of those that nobody touches something is held all the while: their
// PendingChanges are not written either, though their pipelines run as often as in ten minutes and more
// of polling as it is by default. Crossplane watches policies, windows and Enforcements
// and runs the pipeline of each composite resource when any of them is written
// to, so none may be.
//
// KAUSALITY_XRS=n has n of them, KAUSALITY_SEED=n others changed in the same order.
func TestCompositeResourcesThatNobodyTouchesAreLeftAlone(t *testing.T) {
	world.Long(t)

	seed, n := world.Number(t, world.EnvSeed, rand.Uint64()>>32), world.Number(t, envXRs, xrs)
	ttl := min(max(time.Duration(n)*time.Second/perSecond, ttlLeast), ttlMost).Round(time.Second)
	length := min(periods*ttl, longest)

	t.Logf("%s=%d %s=%d; pipelines run every %s, and are counted for %s", world.EnvSeed, seed, envXRs, n, ttl, length)

	// 1. All settle.
	m := newMarket(t, ttl)

	other, err := running.StartManager(t.Context(), processOther)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = other.Stop() })

	loads := m.loads(t)
	m.fill(t, loads, int(n))

	held := named(quiet, min(kept, int(n)))
	m.hold(t, held)

	world.Eventually(t, "calm", func(context.Context) error { return calm(runs(t), ttl, ttl*3/2) })

	listed := m.listed(t, held)

	// 2. With nothing to do pipelines run when it is time.
	from := time.Now()
	wait(t, length)

	idle := counted(runs(t), ttl, from, time.Now())

	// 3. With much to do for others, too.
	from = time.Now()
	times := m.strain(t, loads, seed, length)
	loaded := counted(runs(t), ttl, from, from.Add(length))

	t.Logf("idle:   %s", idle)
	t.Logf("loaded: %s, %.3f of idle, beside %v", loaded, float64(loaded.runs)/float64(idle.runs), times)
	m.breakers(t)
	m.sizes(t)

	// Where the machine was busier before, fewer ran than had to.
	due := max(idle.runs, int(n)*int(length/ttl))

	if loaded.ratio() > most || float64(loaded.runs) > most*float64(due) {
		t.Errorf("under load there were %s; idle, there were %d, and %d were due", loaded, idle.runs, due)
	}

	if diff := cmp.Diff(listed, m.listed(t, held)); diff != "" {
		t.Errorf("PendingChanges were written while nothing else was held, by resource version, -before, +after:\n%s", diff)
	}

	// 4. That would have been seen.
	m.control(t, int(n))
}

// kept is of how many something is held of those that nobody touches.
const kept = 5

// What the names begin with of those that nobody touches, and of those that are
// changed by their Composition.
const (
	quiet  = "quiet"
	rolled = "rolled"
)

// fill makes all stalls.
func (m market) fill(t *testing.T, loads []load, n int) {
	t.Helper()

	if err := m.compose(t.Context(), t, shared, "v0"); err != nil {
		t.Fatal(err)
	}

	for _, l := range loads {
		m.open(t, l.name == rolled, l.stalls()...)
	}

	m.open(t, false, named(quiet, n)...)
}

// hold has something asked for of stalls that nobody may, and waits until that is listed.
func (m market) hold(t *testing.T, stalls []string) {
	t.Helper()

	for _, name := range stalls {
		world.Must(t, m.set(t.Context(), m.admin, name, "note", "kept"))
	}

	world.Eventually(t, "lists of what is held", func(ctx context.Context) error {
		for _, name := range stalls {
			u, err := m.pending(ctx, name)
			if err != nil {
				return err
			}

			if total := resource.Int(u.Object, "status", "total"); total != 1 {
				return fmt.Errorf("%d changes of %s are listed: %w", total, name, world.ErrOther)
			}
		}

		return nil
	})
}

// pending is what is held of a stall.
func (m market) pending(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	u := world.Prototype(v1alpha1.GroupVersion().WithKind("PendingChange"))
	if err := m.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pending.Name(stallKind().GroupKind(), name)}, u); err != nil {
		return nil, fmt.Errorf("cannot get what is held of %s: %w", name, err)
	}

	return u, nil
}

// listed are the resource versions of the lists of what is held of stalls.
func (m market) listed(t *testing.T, stalls []string) map[string]string {
	t.Helper()

	out := make(map[string]string, len(stalls))

	for _, name := range stalls {
		u, err := m.pending(t.Context(), name)
		world.Must(t, err)

		out[name] = u.GetResourceVersion()
	}

	return out
}

// strain puts on the loads for a time, and restarts the manager that leads in the
// midst of it. It returns how often each did something.
func (m market) strain(t *testing.T, loads []load, seed uint64, length time.Duration) map[string]int {
	t.Helper()

	ctx, rest := context.WithTimeout(t.Context(), length)
	defer rest()

	restarted := make(chan error, 1)

	time.AfterFunc(length/2, func() {
		first := running.Process(processManager)
		if err := first.Stop(); err != nil {
			restarted <- err

			return
		}

		restarted <- first.Restart(context.WithoutCancel(ctx))
	})

	times, err := work(ctx, loads, seed)
	if err != nil {
		t.Fatal(err)
	}

	if err := <-restarted; err != nil {
		t.Fatal(err)
	}

	for name, n := range times {
		if n < 2 {
			t.Errorf("%d of %s: that is no load", n, name)
		}
	}

	return times
}

// control writes to the policy what means nothing: all stalls are woken, and that
// is counted. On a busy machine some come to run so late that it was time anyway,
// so it writes again.
func (m market) control(t *testing.T, n int) {
	t.Helper()

	from, last, writes := time.Now(), time.Time{}, 0

	world.Eventually(t, "all awake", func(ctx context.Context) error {
		if time.Since(last) > m.ttl/2 {
			u := world.Prototype(v1alpha1.GroupVersion().WithKind("AllowancePolicy"))
			u.SetName("stall-size")

			writes++
			last = time.Now()

			if err := m.admin.Patch(ctx, u, world.Merge(fmt.Sprintf(`{"metadata": {"annotations": {"note": "nothing %d"}}}`, writes))); err != nil {
				return err
			}
		}

		if c := counted(runs(t), m.ttl, from, time.Now()); c.early < n/2 {
			return fmt.Errorf("after %d writes, of %d stalls there were %s: %w", writes, n, c, world.ErrOther)
		}

		return nil
	})
}

// wait lets a time pass in which nothing is done.
func wait(t *testing.T, length time.Duration) {
	t.Helper()

	select {
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	case <-time.After(length):
	}
}
