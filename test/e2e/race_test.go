// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const (
	// rounds is how often each racer races.
	rounds = 4
	// lap is how long a round takes at least: people are no faster, and
	// Crossplane's circuit breaker counts on that.
	lap = 40 * time.Second
)

// racers is how many race.
func racers() int { return racing() / rounds }

// TestTheGateKeepsUpWithStaleObservations has Crossplane, with the circuit
// breaker it has by default, work with observations that are up to most of a
// second old, while gates open and close. A round does not start before the
// breaker of its racer has tokens for it: see [bucket].
func TestTheGateKeepsUpWithStaleObservations(t *testing.T) {
	if racing() == 0 {
		t.Skip("it needs the machine for itself: make test-race")
	}

	c := newCluster(t, "Racer", "")
	if err := c.applyFile(t.Context(), "racers.yaml"); err != nil {
		t.Fatal(err)
	}

	// 1. Every version of every object is read.
	seen := &spectator{sizes: map[string][]string{}, opened: map[string]int{}, buckets: map[string]*bucket{}}
	seen.follow(t)

	// 2. All race.
	var (
		wg      sync.WaitGroup
		slowest atomic.Int64
	)

	for i := range racers() {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * lap / time.Duration(racers())) // Not in step.

			racer := c.of("Racer", fmt.Sprint("racer-", i))

			for round := range rounds + 1 {
				start := time.Now()
				if err := racer.race(t.Context(), round); err != nil {
					t.Errorf("racer %d, round %d: %v\n%s", i, round, err, racer.dump(t.Context()))

					return
				}

				took := time.Since(start)
				slowest.Store(max(slowest.Load(), int64(took)))
				time.Sleep(max(lap-took, seen.refill(racer.name)))
			}
		})
	}

	wg.Wait()

	// 3. What was there to see.
	seen.judge(t, c)

	breaker := metrics(t, running.CrossplaneMetricsURL())
	if n := breaker.Sum("circuit_breaker_opens_total"); n > 0 {
		t.Errorf("Crossplane's circuit breaker tripped %v times", n)
	}

	counted, fewest := seen.drained()
	if counted < breaker.Sum("circuit_breaker_events_total")/2 {
		t.Errorf("Crossplane counted %v events, and we %v: rounds do not wait for its circuit breaker", breaker.Sum("circuit_breaker_events_total"), counted)
	}

	// Were nothing stale, nothing would have been shown.
	stale := metrics(t, running.ManagerMetricsURL()).Sum("kausality_webhook_overruled_total", "kind=Object")
	if stale == 0 {
		t.Error("Crossplane never tried to write what it had observed before a gate moved")
	}

	if n := c.refused(t); n > 0 {
		t.Errorf("the API server refused %v of Crossplane's writes, of which it then warns", n)
	}

	t.Logf("%d rounds: the slowest took %s; Crossplane counted %.0f events (we %.0f), %.1f for each round and creation, "+
		"its circuit breaker had %.0f tokens at least, and %.0f values that it wrote were stale",
		racers()*rounds, time.Duration(slowest.Load()).Round(time.Second/10), breaker.Sum("circuit_breaker_events_total"), counted,
		breaker.Sum("circuit_breaker_events_total")/float64(racers()*(rounds+1)), fewest, stale)
}

// The circuit breaker of Crossplane, as its flags in options have it.
const (
	breakerBurst  = 100
	breakerRefill = 1
)

// enough is how many tokens a round starts with. One takes 35 on a machine that is not
// busy, and up to 80 more than are added meanwhile on one with a load of 13.
const enough = 95

// A bucket is what is left of the tokens of a composite resource's circuit breaker:
// Crossplane takes one for each object that a watch tells it of, and two for an
// update. On a busy machine a round takes more tokens, as writers meet more often,
// so that rounds at a fixed pace would drain it.
type bucket struct {
	tokens, fewest, taken float64
	at                    time.Time
}

// take takes tokens at a time, after those have been added that are due.
func (b *bucket) take(n float64, now time.Time) {
	b.tokens = min(breakerBurst, b.tokens+breakerRefill*now.Sub(b.at).Seconds()) - n
	b.fewest, b.taken, b.at = min(b.fewest, b.tokens), b.taken+n, now
}

// missing is how long it takes until there are enough.
func (b *bucket) missing(now time.Time) time.Duration {
	b.take(0, now)

	return time.Duration(max(0, enough-b.tokens) / breakerRefill * float64(time.Second))
}

// race changes a size, as who may, and once at the same time something else, as
// who may not, and waits until the one has arrived and nothing is under way.
func (c cluster) race(ctx context.Context, round int) error {
	size := fmt.Sprint("size-", round)

	if err := c.apply(ctx, hans, sized("Racer", c.name, size)); err != nil {
		return err
	}

	if round == 2 {
		if err := c.apply(ctx, admin, fmt.Sprintf("{apiVersion: shop.example.org/v1, kind: Racer, metadata: {name: %s, namespace: default}, spec: {note: note-%d}}", c.name, round)); err != nil {
			return err
		}
	}

	return scenario.Eventually(ctx, size, all(c.shows("size", size, "car"), c.spent, c.says(": settled")))
}

// spectator notes what is never to happen.
type spectator struct {
	mu sync.Mutex
	// wrong versions, and why.
	wrong []string
	// sizes that external objects had, in order; and how often gates opened.
	sizes  map[string][]string
	opened map[string]int
	state  map[string]v1alpha1.GateState
	// buckets are those of the composite resources, by name.
	buckets map[string]*bucket
}

// count takes the tokens of a version of a composite resource, or of one it composes.
func (s *spectator) count(name string, event watch.EventType) {
	b, ok := s.buckets[name]
	if !ok {
		b = &bucket{tokens: breakerBurst, fewest: breakerBurst, at: time.Now()}
		s.buckets[name] = b
	}

	n := 1.0
	if event == watch.Modified {
		n = 2
	}

	b.take(n, time.Now())
}

// refill is how long it takes until the bucket of a composite resource has enough.
func (s *spectator) refill(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()

	b, ok := s.buckets[name]
	if !ok {
		return 0
	}

	return b.missing(time.Now())
}

// drained returns how many tokens were taken of all buckets, and how few there were
// in one of them.
func (s *spectator) drained() (taken, fewest float64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	fewest = breakerBurst
	for _, b := range s.buckets {
		taken, fewest = taken+b.taken, min(fewest, b.fewest)
	}

	return taken, fewest
}

func (s *spectator) follow(t *testing.T) {
	t.Helper()

	d, err := dynamic.NewForConfig(running.Config())
	if err != nil {
		t.Fatal(err)
	}

	s.state = map[string]v1alpha1.GateState{}

	for gvr, read := range map[schema.GroupVersionResource]func(*unstructured.Unstructured, watch.EventType){
		{Group: "shop.example.org", Version: "v1", Resource: "racers"}: s.racer,
		objectKind().GroupVersion().WithResource("objects"):            s.object,
		{Version: "v1", Resource: "configmaps"}:                        s.external,
	} {
		w, err := d.Resource(gvr).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(w.Stop)

		go func() {
			for e := range w.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Deleted {
					s.mu.Lock()
					read(u, e.Type)
					s.mu.Unlock()
				}
			}
		}()
	}
}

// racer reads a version of a composite resource.
func (s *spectator) racer(u *unstructured.Unstructured, event watch.EventType) {
	s.count(u.GetName(), event)
}

// object reads a version of a managed resource: its gate is no wider than
// its record and an allowance say.
func (s *spectator) object(u *unstructured.Unstructured, event watch.EventType) {
	s.count(u.GetLabels()["crossplane.io/composite"], event)

	rec, err := allowance.ParseGate(u)
	if err != nil {
		s.wrong = append(s.wrong, err.Error())

		return
	}

	if rec == nil {
		return // As it was made: the initial set.
	}

	if s.state[u.GetName()] == v1alpha1.GateClosed && rec.State == v1alpha1.GateOpen && !byCreation(rec) {
		s.opened[u.GetName()]++
	}

	s.state[u.GetName()] = rec.State

	set, ok := resource.Value(u.Object, "spec", "managementPolicies")
	open := management.Acting(resource.Strings(u.Object, "spec", "managementPolicies"))

	switch {
	case !ok, slices.Contains(open, management.ActionAll), slices.Contains(open, management.ActionDelete):
	case rec.State == v1alpha1.GateClosed && len(open) == 0:
		return
	case rec.State == v1alpha1.GateOpen && rec.Creating:
		return
	case rec.State == v1alpha1.GateOpen && slices.Equal(open, rec.Actions) && granted(rec, open):
		return
	}

	s.wrong = append(s.wrong, fmt.Sprintf("%s at generation %d has managementPolicies %v under the gate %+v", u.GetName(), u.GetGeneration(), set, rec))
}

// byCreation reports whether a gate's record has allowances only of the creation of the
// composite resource, which go on until it was ready.
func byCreation(rec *v1alpha1.GateRecord) bool {
	return !slices.ContainsFunc(rec.Allowances, func(a v1alpha1.Allowance) bool {
		return len(a.Trace) == 0 || a.Trace[0].Field != v1alpha1.MutationCreate
	})
}

// granted reports whether allowances of a gate's record give all of some actions.
func granted(rec *v1alpha1.GateRecord, actions []string) bool {
	for _, action := range actions {
		if !slices.ContainsFunc(rec.Allowances, func(a v1alpha1.Allowance) bool {
			return a.Relation == v1alpha1.RelationExternal && slices.Contains(a.Mutations, action)
		}) {
			return false
		}
	}

	return true
}

// external reads a version of an external object.
func (s *spectator) external(u *unstructured.Unstructured, _ watch.EventType) {
	name, ok := strings.CutSuffix(u.GetName(), "-car")
	if !ok {
		return
	}

	if note := resource.String(u.Object, "data", "note"); note != "" {
		s.wrong = append(s.wrong, fmt.Sprintf("note %q of %s was not asked for", note, name))
	}

	size := resource.String(u.Object, "data", "size")
	if n := len(s.sizes[name]); n == 0 || s.sizes[name][n-1] != size {
		s.sizes[name] = append(s.sizes[name], size)
	}
}

func (s *spectator) judge(t *testing.T, c cluster) {
	t.Helper()

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, w := range s.wrong {
		t.Error(w)
	}

	if t.Failed() {
		t.Log(c.of("Racer", "racer-0").dump(t.Context()))
	}

	want := make([]string, 0, rounds+1)
	for round := range rounds + 1 {
		want = append(want, fmt.Sprint("size-", round))
	}

	if len(s.sizes) != racers() || len(s.opened) != racers() {
		t.Errorf("saw %d external objects and %d gates", len(s.sizes), len(s.opened))
	}

	for name, sizes := range s.sizes {
		if !slices.Equal(sizes, want) {
			t.Errorf("%s had the sizes %v, want %v", name, sizes, want)
		}
	}

	for name, n := range s.opened {
		if n != rounds {
			t.Errorf("the gate of %s opened %d times in %d rounds", name, n, rounds)
		}
	}
}

// metrics reads what a process counts.
func metrics(t *testing.T, url string) world.Metrics {
	t.Helper()

	out, err := world.Scrape(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// refused counts the writes that the gate's guard refused.
func (c cluster) refused(t *testing.T) float64 {
	t.Helper()

	k, err := kubernetes.NewForConfig(running.Config())
	if err != nil {
		t.Fatal(err)
	}

	stream, err := k.RESTClient().Get().AbsPath("/metrics").Stream(t.Context())
	if err != nil {
		t.Fatal(errors.Join(err, world.ErrOther))
	}

	defer func() { _ = stream.Close() }()

	out, err := world.ParseMetrics(stream)
	if err != nil {
		t.Fatal(err)
	}

	return out.Sum("apiserver_validating_admission_policy_check_total",
		"policy=kausality-gate-writer", "enforcement_action=deny")
}
