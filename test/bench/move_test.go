// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

const (
	// One of so many objects is changed while their gates are timed: fewer where they are changed one
	// by one, for that takes a second each.
	changedSlowly  = 200
	changedQuickly = 10
)

// watchAgain is how long it takes until a watch that was refused is tried again.
const watchAgain = 20 * time.Millisecond

// move times gates at a number of changes per second, ours and the bare controller's in turns, so that
// whatever else slows the machine down slows both: from the moment that a watcher sees the allowance to
// the moment that it sees the gate open (open), and from the moment that it sees the provider report
// Synced to the moment that it sees the gate closed (close). It reports milliseconds, those of the bare
// controller (floor-), and how many times as long ours take (-x). writes/op is how often our manager
// wrote objects per change, events/op how often it wrote events. Of 200 objects one is changed
// at one change per second, of ten at more; percentiles want a BENCHTIME of minutes.
func (g *gates) move(b *testing.B, rate int) {
	b.Helper()

	kinds := []string{kindManaged, kindFloor}
	watchers := map[string]*watcher{}
	took := map[string]*timings{}

	for _, kind := range kinds {
		watchers[kind] = g.watch(b, kind)
		took[kind] = &timings{}
	}

	before := g.writes(b, breather)

	for b.Loop() {
		n := max(1, g.objects/changedQuickly/rate)
		if rate == 1 {
			n = max(1, g.objects/changedSlowly)
		}

		for range n {
			for _, kind := range kinds {
				g.turn(b, watchers[kind], rate, took[kind])

				if rate > 1 {
					g.writes(b, breather) // Our events must not be in the way of the bare controller.
				}
			}
		}
	}

	b.StopTimer()

	changes := float64(len(took[kindManaged].open))
	after := g.writes(b, calm)

	// The benchmark itself writes twice per change: the allowance, and what the provider says.
	b.ReportMetric((after.objects-before.objects)/changes-2, "writes/op")
	b.ReportMetric((after.events-before.events)/changes, "events/op")

	report := func(name string, ours, floor []time.Duration) {
		for suffix, part := range map[string]float64{"-p50-": median, "-p99-": 0.99} {
			b.ReportMetric(percentile(ours, part), name+suffix+"ms")
			b.ReportMetric(percentile(floor, part), "floor-"+name+suffix+"ms")
			b.ReportMetric(percentile(ours, part)/percentile(floor, part), name+suffix+"x")
		}
	}
	report("open", took[kindManaged].open, took[kindFloor].open)
	report("close", took[kindManaged].closed, took[kindFloor].closed)
}

// timings are how long gates took.
type timings struct {
	mu           sync.Mutex
	open, closed []time.Duration
}

// turn makes the changes of a second, of another object each, and waits until all gates are closed. One
// change takes half a second's turn, for the other kind has the other half.
func (g *gates) turn(b *testing.B, w *watcher, rate int, took *timings) {
	b.Helper()

	ticker := time.NewTicker(max(time.Second/time.Duration(rate)/2, 10*time.Millisecond))
	defer ticker.Stop()

	var wg sync.WaitGroup

	errs := make([]error, rate)

	for i := range rate {
		object := g.changes[w.kind] % g.objects
		g.changes[w.kind]++

		wg.Go(func() { errs[i] = g.cycle(b.Context(), w, object, took) })
		<-ticker.C
	}

	wg.Wait()

	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
}

// breather is how long nothing must be written between turns.
const breather = 300 * time.Millisecond

// cycleTimeout is how long a gate may take.
const cycleTimeout = time.Minute

// cycle changes an object, and does its provider's part.
func (g *gates) cycle(ctx context.Context, w *watcher, object int, took *timings) error {
	ctx, cancel := context.WithTimeout(ctx, cycleTimeout)
	defer cancel()

	// 1. Allow a change.
	c := w.expect(nameOf(object))
	if err := g.allow(ctx, w.kind, c); err != nil {
		return err
	}

	if err := wait(ctx, c.isOpen); err != nil {
		return fmt.Errorf("the gate of %s %s does not open: %w", w.kind, c.name, err)
	}

	// 2. Apply it.
	if err := g.synced(ctx, w.kind, c); err != nil {
		return err
	}

	if err := wait(ctx, c.isClosed); err != nil {
		return fmt.Errorf("the gate of %s %s does not close: %w", w.kind, c.name, err)
	}

	took.mu.Lock()
	defer took.mu.Unlock()

	took.open = append(took.open, c.opened.Sub(c.asked))
	took.closed = append(took.closed, c.closed.Sub(c.shown))

	return nil
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return nil
	}
}

// allow writes a change with the allowance for it, as the function has Crossplane write it.
func (g *gates) allow(ctx context.Context, kind string, c *cycle) error {
	u := newPrototype(kind)
	u.SetName(c.name)

	entry := traceOf(u, c.generation+1)

	return g.patch(ctx, g.machine, kind, c.name, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{
			v1alpha1.AnnotationTrace: allowance.FormatList([]v1alpha1.TraceEntry{entry}),
			v1alpha1.AnnotationAllowances: allowance.FormatList([]v1alpha1.Allowance{{
				Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}, Generation: c.generation + 1,
				ID: allowance.ID(c.generation+1, 0), Initiator: initiator, Policy: compositePolicy().Name, Trace: entry.Trace,
				Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: compositePolicy().Name, Field: entry.Field},
			}}),
		}},
		"spec": map[string]any{"forProvider": map[string]any{"size": c.size}},
	})
}

// synced reports what a provider does that has applied a change under an open gate.
func (g *gates) synced(ctx context.Context, kind string, c *cycle) error {
	return g.patch(ctx, g.admin, kind, c.name, map[string]any{"status": map[string]any{
		"atProvider": map[string]any{"size": c.size}, "conditions": conditionsOf(c.openGeneration),
	}}, "status")
}

func (g *gates) patch(ctx context.Context, as client.Client, kind, name string, what map[string]any, subresource ...string) error {
	raw, err := json.Marshal(what)
	if err != nil {
		return err
	}

	u := newPrototype(kind)
	u.SetNamespace(namespace)
	u.SetName(name)

	if len(subresource) > 0 {
		return as.SubResource(subresource[0]).Patch(ctx, u, client.RawPatch(types.MergePatchType, raw))
	}

	return as.Patch(ctx, u, client.RawPatch(types.MergePatchType, raw))
}

// cycle is one change of an object, and when a watcher saw what of it.
type cycle struct {
	name string
	// size that is asked for.
	size int64
	// generation is the object's before the change, openGeneration that of the opening.
	generation, openGeneration int64

	asked, opened, shown, closed time.Time
	isOpen, isClosed             chan struct{}
}

// watcher sees the objects of a kind.
type watcher struct {
	kind   string
	mu     sync.Mutex
	cycles map[string]*cycle
}

// watch watches a kind until the benchmark is over.
func (g *gates) watch(b *testing.B, kind string) *watcher {
	b.Helper()

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvkOf(kind))

	if err := g.machine.List(b.Context(), list); err != nil {
		b.Fatal(err)
	}

	w := &watcher{kind: kind, cycles: map[string]*cycle{}}
	for i := range list.Items {
		u := &list.Items[i]
		size, _, _ := unstructured.NestedInt64(u.Object, "spec", "forProvider", "size")
		w.cycles[u.GetName()] = &cycle{size: size, generation: u.GetGeneration()}
	}

	version := list.GetResourceVersion()
	list.Items = nil

	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)

	go func() {
		for ctx.Err() == nil { // The API server ends the watch of who does not keep up.
			events, err := g.machine.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
			if err != nil {
				time.Sleep(watchAgain)

				continue
			}

			for e := range events.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					version = u.GetResourceVersion()
					w.see(u, time.Now())
				}
			}
		}
	}()

	return w
}

// expect has the next change of an object watched for.
func (w *watcher) expect(name string) *cycle {
	w.mu.Lock()
	defer w.mu.Unlock()

	was := w.cycles[name]
	c := &cycle{
		name: name, size: was.size + 1, generation: was.generation, isOpen: make(chan struct{}), isClosed: make(chan struct{}),
	}
	w.cycles[name] = c

	return c
}

// see notes when something happened for the first time.
func (w *watcher) see(u *unstructured.Unstructured, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	c := w.cycles[u.GetName()]
	size, _, _ := unstructured.NestedInt64(u.Object, "spec", "forProvider", "size")
	shown, _, _ := unstructured.NestedInt64(u.Object, "status", "atProvider", "size")
	policies, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "managementPolicies")
	open := slices.Contains(policies, "Update")

	if c == nil || size != c.size || c.isOpen == nil {
		return
	}

	c.generation = u.GetGeneration()

	if c.asked.IsZero() {
		c.asked = now
	}

	if open && c.opened.IsZero() {
		c.opened, c.openGeneration = now, u.GetGeneration()
		close(c.isOpen)
	}

	if shown == c.size && c.shown.IsZero() {
		c.shown = now
	}

	if !open && !c.opened.IsZero() && c.closed.IsZero() {
		c.closed = now
		close(c.isClosed)
	}
}

// written is how many writes the API server has taken by now.
type written struct {
	objects, events float64
}

// writes counts writes of managed resources and composites, and of events, once these are calm: they
// are written in the background.
func (g *gates) writes(b *testing.B, calm time.Duration) written {
	b.Helper()

	var (
		was   written
		since time.Time
	)

	eventually(b, "rest of the writers", func(ctx context.Context) error {
		now, err := g.countWrites(ctx)
		if err != nil {
			return err
		}

		if now != was {
			was, since = now, time.Now()
		}

		if left := calm - time.Since(since); left > 0 {
			return fmt.Errorf("there were %v writes", now)
		}

		return nil
	})

	return was
}

func (g *gates) countWrites(ctx context.Context) (written, error) {
	objects, err := g.taken(ctx, resourceOf(kindManaged), resourceOf(kindComposite))
	events, err2 := g.taken(ctx, "events")

	return written{objects: objects, events: events}, errors.Join(err, err2)
}

// taken is how many writes of some resources the API server has taken by now.
func (c *cluster) taken(ctx context.Context, resources ...string) (float64, error) {
	raw, err := c.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}

	var out float64

	for _, resource := range resources {
		for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
			n, parseErr := sum(raw, "apiserver_request_total", `resource="`+resource+`"`, `verb="`+verb+`"`)
			err = errors.Join(err, parseErr)
			out += n
		}
	}

	return out, err
}
