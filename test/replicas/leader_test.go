// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package replicas_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const (
	lease = "kausality-manager"
	// leaseDuration is how long the others wait for a leader, as in TestMain.
	leaseDuration = 6 * time.Second
)

const openSeconds = "kausality_gate_open_seconds{group=sql.example.org,kind=Database}"

// TestAnotherReplicaTakesOver kills the leader while gates are open. It does not
// run beside others, for which there would be no leader too.
func TestAnotherReplicaTakesOver(t *testing.T) {
	w := world.New(t, running)
	w.Namespace(t, "taken-over")

	// The test before this one may have started it again a moment ago: the lease is free for the fastest then.
	first := running.Manager()
	world.Eventually(t, "a leader", leads(first, 1))

	second, err := running.StartManager(t.Context(), "kausality-manager-2")
	if err != nil {
		t.Fatal(err)
	}

	// 1. One leads, and moves gates.
	world.Eventually(t, "a follower", leads(second, 0))

	list := make([]*unstructured.Unstructured, 0, 5)
	for i := range 5 {
		list = append(list, w.Database(t, "taken-over", fmt.Sprint("db-", i)))
	}

	w.Rest(true)
	resizeAll(t, w, "large", list)
	world.Eventually(t, "open gates", w.Open(list...))
	world.Eventually(t, "count of open gates", gatesOpen(first, 5))
	world.Eventually(t, "what the leader tells", tells(t, first, "Open", list...))

	if got := moves(t, second); len(got) > 0 {
		t.Errorf("a follower moved gates: %v", got)
	}

	// 2. It is killed. The webhook of the other goes on at once.
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}

	killed := time.Now()
	another := w.Made(t, "taken-over", "meanwhile")

	t.Logf("the webhook answered %s after the leader was killed", time.Since(killed).Round(time.Millisecond))

	// 3. The other leads once the lease is over, and closes the gates.
	w.Rest(false)
	world.Eventually(t, "closed gates", w.Closed("large", list...))

	t.Logf("the gates were closed %s after the leader was killed, whose lease was for %s",
		time.Since(killed).Round(time.Second/10), leaseDuration)
	world.Eventually(t, "another leader", leads(second, 1))
	world.Eventually(t, "the gate of what was made meanwhile", w.Closed("small", another))
	world.Eventually(t, "count of closed gates", gatesOpen(second, 0))

	// How long they were open is known from their records.
	got, err := scrape(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}

	if sum := got[strings.Replace(openSeconds, "{", "_sum{", 1)]; got[openSeconds] < 5 || sum < 5*2 {
		t.Errorf("%v gates were open for %v s in all: %v", got[openSeconds], sum, got.like("kausality_gate"))
	}

	// 4. The first returns as a follower.
	if err := first.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	before := len(moves(t, first))
	resizeAll(t, w, "huge", list)
	world.Eventually(t, "closed gates", w.Closed("huge", list...))
	world.Eventually(t, "a follower", leads(first, 0))

	if n := len(moves(t, first)); n != before {
		t.Errorf("a follower moved %d gates", n-before)
	}

	// 5. A leader that is asked to end gives its lease up.
	led := holder(t)

	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}

	if now := holder(t); now == led {
		t.Errorf("%q still has the lease after it ended", now)
	}

	world.Eventually(t, "the first leading again", leads(first, 1))

	// 6. Nobody did anything twice.
	resizeAll(t, w, "small", list)
	world.Eventually(t, "closed gates", w.Closed("small", list...))
	world.Eventually(t, "one move each", onceEach(t, list, first, second))

	if err := second.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	hang(t, w, first, second, list)
}

// holder is who has the lease.
func holder(t *testing.T) string {
	t.Helper()

	k, err := kubernetes.NewForConfig(running.Config())
	if err != nil {
		t.Fatal(err)
	}

	l, err := k.CoordinationV1().Leases(stack.KausalityNamespace).Get(t.Context(), lease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return ptr.Deref(l.Spec.HolderIdentity, "")
}

// hang has a leader hang while gates are open. Another closes them once the lease
// is over; the first, which still believes that it leads when it goes on, ends.
func hang(t *testing.T, w *world.World, leader, follower *stack.Manager, list []*unstructured.Unstructured) {
	t.Helper()

	w.Rest(true)
	resizeAll(t, w, "large", list)
	world.Eventually(t, "open gates", w.Open(list...))
	world.Eventually(t, "what the leader tells", tells(t, leader, "Open", list...))

	before := len(moves(t, leader))

	if err := syscall.Kill(leader.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	hung := time.Now()

	w.Rest(false)
	world.Eventually(t, "closed gates", w.Closed("large", list...))
	t.Logf("the gates were closed %s after the leader hung", time.Since(hung).Round(time.Second/10))
	world.Eventually(t, "another leader", leads(follower, 1))

	if err := syscall.Kill(leader.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "the end of who led before", func(context.Context) error {
		if pid := leader.PID(); pid != 0 {
			return fmt.Errorf("process %d goes on: %w", pid, world.ErrOther)
		}

		return nil
	})

	if n := len(moves(t, leader)); n != before {
		t.Errorf("who led before moved %d gates", n-before)
	}

	if err := leader.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "a follower", leads(leader, 0))

	// The tests after this one have one manager.
	if err := follower.Stop(); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "a leader again", leads(leader, 1))
}

// onceEach checks that each gate was taken over, either open or closed at once,
// and then opened and closed once for each of three changes, as managers log after
// they moved it.
func onceEach(t *testing.T, list []*unstructured.Unstructured, managers ...*stack.Manager) func(context.Context) error {
	t.Helper()

	return func(context.Context) error {
		all := make([][]string, len(managers))
		for i, m := range managers {
			all[i] = moves(t, m)
		}

		for _, u := range list {
			counted := map[string]int{}

			for _, m := range slices.Concat(all...) {
				if move, ok := strings.CutPrefix(m, u.GetNamespace()+"/"+u.GetName()+" "); ok {
					counted[move]++
				}
			}

			if counted["TakeOver"] > 1 || counted["Open"] != 3 || counted["Close"] != 4 {
				return fmt.Errorf("%s: %v: %w", u.GetName(), counted, world.ErrOther)
			}
		}

		return nil
	}
}

func resizeAll(t *testing.T, w *world.World, size string, list []*unstructured.Unstructured) {
	t.Helper()

	for _, u := range list {
		// A connection to a manager that is gone may be used once more.
		world.Eventually(t, "a change of "+u.GetName(), func(ctx context.Context) error { return w.Resize(ctx, u, size) })
	}
}

// gatesOpen checks how many databases' gates a manager counts as open.
func gatesOpen(m *stack.Manager, want float64) func(context.Context) error {
	const name = "kausality_gates_open{group=sql.example.org,kind=Database}"

	return func(ctx context.Context) error {
		got, err := scrape(ctx, m)
		if err != nil {
			return err
		}

		if got[name] != want {
			return fmt.Errorf("%s is %v, want %v; %v: %w", name, got[name], want, got.like("kausality_gate"), world.ErrOther)
		}

		return nil
	}
}
