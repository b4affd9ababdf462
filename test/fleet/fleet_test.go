// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fleet_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/peer"
	"github.com/kausality-io/kausality-crossplane/test/usage"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// envXRs names the environment variable that says how many composite resources there are, and envPeer the one that has the same done
// with a peer that does nothing.
const (
	envXRs  = "KAUSALITY_XRS"
	envPeer = "KAUSALITY_PEER"
)

const (
	// xrs is how many there are by default, and writers how many of them are written at once.
	xrs     = 40
	writers = 10
	// calm is how long nobody writes before what comes of a storm is over.
	calm = 10 * time.Second
	// recorded is when each managed resource has the record of its gate at the latest, also on a busy machine. Some seconds
	// are usual.
	recorded  = time.Minute
	namespace = "default"
)

// TestAStormEnds makes and then edits a fleet of composite resources at once, without Kausality and with it.
//
// KAUSALITY_XRS=n has n of them. KAUSALITY_PEER=1 does the same with one more function that has nothing to do and a pair of webhooks
// that allow everything, where Kausality's are. hack/fleet.sh plays it several times, and prints medians.
func TestAStormEnds(t *testing.T) {
	world.Long(t)

	n := int(world.Number(t, envXRs, xrs))
	of := map[string][2]took{}

	of["without"] = storm(t, fleet{kind: "Plain", n: n})

	if world.Number(t, envPeer, 0) > 0 {
		of["peer"] = storm(t, fleet{kind: "Peered", n: n, peered: true})
	}

	of["with"] = storm(t, fleet{kind: "Gated", n: n, gated: true})

	for i, done := range []string{"made", "changed"} {
		for _, by := range []string{"without", "peer", "with"} {
			if of, ok := of[by]; ok { // As hack/fleet.sh reads it.
				t.Logf("fleet of %d %s %s: %.2f s, CPU %.2f s, CPU to the end %.2f s", n, done, by,
					of[i].took.Seconds(), of[i].busy.Seconds(), of[i].cpu.Seconds())
			}
		}
	}
}

// fleet is so many composite resources of a kind.
type fleet struct {
	kind string
	n    int
	// gated by Kausality, or peered with what does nothing.
	gated, peered bool
	admin, hans   client.Client
	// peer is the webhook that does nothing.
	peer *peer.Peer
}

func (f fleet) group() string  { return strings.ToLower(f.kind) + ".fleet.example.org" }
func (f fleet) plural() string { return strings.ToLower(f.kind) + "s" }
func (f fleet) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: f.group(), Version: "v1", Kind: f.kind}
}

// has reports whether a request is about an object of the fleet: a composite resource, or what is composed of one.
func (f fleet) has(e *event) bool {
	return strings.HasPrefix(e.ObjectRef.Name, f.name(0)[:len(f.kind)+1])
}

func (f fleet) name(i int) string { return fmt.Sprintf("%s-%d", strings.ToLower(f.kind), i) }

// took is how long a storm lasts until what it asks for is there, what CPU that takes, and what CPU it takes until it is over.
type took struct {
	took, busy, cpu time.Duration
}

// storm makes the composite resources of a fleet, then edits them.
func storm(t *testing.T, f fleet) [2]took {
	t.Helper()

	f = f.set(t)

	var out [2]took

	seen := f.watch(t)
	for i, size := range []string{"one", "two"} {
		out[i] = f.play(t, size, i == 0)
	}

	if f.gated {
		seen.check(t, f.n)
	}

	f.pause(t)

	return out
}

// pause has Crossplane leave the fleet alone, so that the next one is not beside it.
func (f fleet) pause(t *testing.T) {
	t.Helper()

	for i := range f.n {
		u := world.Prototype(f.gvk())
		u.SetNamespace(namespace)
		u.SetName(f.name(i))

		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`))
		world.Must(t, f.admin.Patch(t.Context(), u, patch))
	}

	if f.peered {
		f.configure(t, func(o client.Object) error { return f.admin.Delete(t.Context(), o) })
	}
}

// set makes the kind, and what composes it.
func (f fleet) set(t *testing.T) fleet {
	t.Helper()

	f.admin, f.hans = world.Connect(t, running.Config()), world.ConnectAs(t, running, "hans")

	text, err := os.ReadFile(filepath.Join("testdata", "kind.yaml"))
	world.Must(t, err)

	named := strings.NewReplacer("KIND", f.kind, "PLURAL", f.plural(), "GROUP", f.group())
	objects := world.Parse(t, []byte(named.Replace(string(text))))

	if f.peered {
		f.peer = peer.Start(t, t.TempDir())
		f.configure(t, func(o client.Object) error { return f.admin.Create(t.Context(), o) })
		addStep(t, objects[1], "function-auto-ready") // Once more: it finds all as it is to be.
	}

	if f.gated {
		addStep(t, objects[1], "function-kausality")

		text, err = os.ReadFile(filepath.Join("testdata", "gate.yaml"))
		world.Must(t, err)

		objects = append(objects, world.Parse(t, []byte(named.Replace(string(text))))...)
	}

	for _, u := range objects {
		world.Apply(t, f.admin, u)
	}

	world.Eventually(t, "the kind", func(ctx context.Context) error {
		return f.admin.List(ctx, f.list(f.gvk()), client.InNamespace(namespace))
	})
	time.Sleep(calm) // All have heard of it.

	return f
}

// addStep adds a function to a Composition.
func addStep(t *testing.T, composition *unstructured.Unstructured, function string) {
	t.Helper()

	steps := resource.List(composition.Object, "spec", "pipeline")
	steps = append(steps, map[string]any{"step": "last", "functionRef": map[string]any{"name": function}})
	world.Must(t, unstructured.SetNestedSlice(composition.Object, steps, "spec", "pipeline"))
}

// configure makes or deletes the configurations of the pair of webhooks that allow everything: they are asked of what Kausality's are.
func (f fleet) configure(t *testing.T, do func(client.Object) error) {
	t.Helper()

	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(f.peer.URL + path), CABundle: f.peer.CA}
	}
	rule := func(group, resource string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}
	}
	rules := []admissionregistrationv1.RuleWithOperations{rule(f.group(), f.plural()), rule(objectKind().Group, "objects")}
	none, versions, name := admissionregistrationv1.SideEffectClassNone, []string{"v1"}, "peer.fleet.example.org"
	meta := metav1.ObjectMeta{Name: name}

	world.Must(t, do(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: name, ClientConfig: at(peer.MutatePath), Rules: rules, SideEffects: &none, AdmissionReviewVersions: versions,
		}},
	}))
	world.Must(t, do(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name, ClientConfig: at(peer.EnforcePath), Rules: rules, SideEffects: &none, AdmissionReviewVersions: versions,
		}},
	}))
}

func (fleet) list(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	return list
}

// play writes all at once, waits until what comes of it is there, and then until nobody writes any more.
func (f fleet) play(t *testing.T, size string, first bool) took {
	t.Helper()

	l := openLog(t)
	l.next(t)

	before, opened, start := f.cpu(t), opens(t), time.Now()

	f.write(t, size)
	world.Eventually(t, fmt.Sprintf("%d of size %s", f.n, size), func(ctx context.Context) error { return f.shows(ctx, size, first) })

	out := took{took: time.Since(start)}
	out.busy = total(f.cpu(t)) - total(before)

	r := &rest{}
	world.Eventually(t, "the end of the storm", func(ctx context.Context) error { return f.over(ctx, r) })

	spent := f.cpu(t)
	for name, had := range before {
		spent[name] -= had
	}

	out.cpu = total(spent)

	b := bill{xrs: f.n, events: l.next(t)}
	texts, example := b.alternations()
	conflicts, most := total(b.conflicted()), largest(b.conflicted())
	opening := opens(t) - opened

	t.Logf("%s, %d of size %s: %s, over after %s, CPU %s; runs of the pipeline per XR %.1f; conflicts %d, of one object %d; "+
		"statuses written back %d; breakers opened %.0f\n%v\n%s", f.kind, f.n, size, out.took.Round(time.Millisecond),
		time.Since(start).Round(time.Millisecond), out.cpu, float64(b.runs(f.plural()))/float64(f.n), conflicts, most, texts, opening, spent, b.rows())

	if example != "" {
		t.Logf("written back, for example:\n%s", example)
	}

	if opening > 0 {
		t.Errorf("%s: circuit breakers opened %.0f times", f.kind, opening)
	}

	if !first && f.gated && (conflicts > f.n || texts > f.n) {
		t.Errorf("%s: %d conflicts, %d statuses written back, want at most one of each object: %v", f.kind, conflicts, texts, worst(b.conflicted()))
	}

	return out
}

// write has all be of a size, some at a time.
func (f fleet) write(t *testing.T, size string) {
	t.Helper()

	var group errgroup.Group
	group.SetLimit(writers)

	for i := range f.n {
		group.Go(func() error { return f.apply(t.Context(), i, size) })
	}

	world.Must(t, group.Wait())
}

// apply has a composite resource be of a size.
func (f fleet) apply(ctx context.Context, i int, size string) error {
	u := world.Prototype(f.gvk())
	u.SetNamespace(namespace)
	u.SetName(f.name(i))
	u.Object["spec"] = map[string]any{"size": size, "note": "x"}

	return f.hans.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("hans"))
}

// worst are the objects with most conflicts.
func worst(counts map[string]int) []string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return counts[b] - counts[a] })
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%s: %d", key, counts[key])
	}

	return keys[:min(len(keys), 5)]
}

// shows checks that each external object has a size, and, once they are made, that each composite resource is ready.
func (f fleet) shows(ctx context.Context, size string, ready bool) error {
	if err := f.outside(ctx, slices.Repeat([]string{size}, f.n)); err != nil {
		return err
	}

	if !ready {
		return nil
	}

	list := f.list(f.gvk())
	if err := f.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list what is made: %w", err)
	}

	for i := range list.Items {
		if c, _ := resource.ConditionOf(&list.Items[i], resource.ConditionReady); !c.True() {
			return fmt.Errorf("%s is not ready: %w", list.Items[i].GetName(), world.ErrOther)
		}
	}

	return nil
}

// outside checks that external objects have a size each.
func (f fleet) outside(ctx context.Context, sizes []string) error {
	list := f.list(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := f.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list what is made: %w", err)
	}

	has := map[string]string{}
	for i := range list.Items {
		has[list.Items[i].GetName()] = resource.String(list.Items[i].Object, "data", "size")
	}

	shown := 0

	for i, size := range sizes {
		if has[f.name(i)] == size {
			shown++
		}
	}

	if shown < len(sizes) {
		return fmt.Errorf("%d of %d have their size outside: %w", shown, len(sizes), world.ErrOther)
	}

	return nil
}

// rest is how long nobody has written to a fleet.
type rest struct {
	// versions of all objects, by their uids, and since when they are so.
	versions map[types.UID]string
	since    time.Time
}

// over checks that nothing of the fleet has changed for a while, and that the gates are closed. Crossplane writes what is there
// already whenever it polls: that changes nothing.
func (f fleet) over(ctx context.Context, r *rest) error {
	time.Sleep(time.Second) // A list of all costs the API server as much as some writes do.

	now := map[types.UID]string{}

	for _, gvk := range []schema.GroupVersionKind{f.gvk(), objectKind()} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)

		if err := f.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("cannot list what is made: %w", err)
		}

		for i := range list.Items {
			now[list.Items[i].GetUID()] = list.Items[i].GetResourceVersion()
		}
	}

	if !maps.Equal(now, r.versions) {
		r.versions, r.since = now, time.Now()
	}

	if quiet := time.Since(r.since); quiet < calm {
		return fmt.Errorf("somebody has written %s ago: %w", quiet.Round(time.Second), world.ErrOther)
	}

	return f.closed(ctx)
}

// closed checks that the gates of the fleet are closed, where it has any.
func (f fleet) closed(ctx context.Context) error {
	if !f.gated {
		return nil
	}

	list := f.list(objectKind())
	if err := f.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list managed resources: %w", err)
	}

	for i := range list.Items {
		u := &list.Items[i]
		if ref, _ := resource.ParentOf(u); ref.Kind == f.kind && (slices.Contains(policies(u), any("Update")) || len(policies(u)) == 0) {
			return fmt.Errorf("the gate of %s is open: %w", u.GetName(), world.ErrOther)
		}
	}

	return nil
}

func policies(u *unstructured.Unstructured) []any {
	return resource.List(u.Object, "spec", "managementPolicies")
}

func objectKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "Object"}
}

// sightings are when managed resources were seen first, and when with the record of a gate.
type sightings struct {
	mu              sync.Mutex
	first, recorded map[string]time.Time
}

// watch notes when managed resources of a fleet are seen.
func (f fleet) watch(t *testing.T) *sightings {
	t.Helper()

	c, s := world.Connect(t, running.Config()), &sightings{first: map[string]time.Time{}, recorded: map[string]time.Time{}}

	open := func() watch.Interface {
		stream, err := c.Watch(t.Context(), f.list(objectKind()), client.InNamespace(namespace))
		if err != nil && t.Context().Err() == nil {
			t.Errorf("cannot watch managed resources: %v", err)
		}

		return stream
	}

	// The API server ends the watch of a client that does not keep up. Another one begins with all that is there.
	go func(stream watch.Interface) {
		for ; stream != nil; stream = open() {
			for e := range stream.ResultChan() {
				u, ok := e.Object.(*unstructured.Unstructured)
				if !ok {
					continue
				}

				if ref, _ := resource.ParentOf(u); ref.Kind == f.kind {
					s.note(u)
				}
			}

			stream.Stop()

			if t.Context().Err() != nil {
				return
			}
		}
	}(open())

	return s
}

func (s *sightings) note(u *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if _, ok := s.first[u.GetName()]; !ok {
		s.first[u.GetName()] = time.Now()
	}

	if _, ok := s.recorded[u.GetName()]; !ok && resource.Annotation(u, v1alpha1.AnnotationGate) != "" {
		s.recorded[u.GetName()] = time.Now()
	}
}

// check checks that all were recorded in time.
func (s *sightings) check(t *testing.T, n int) {
	t.Helper()

	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.first) < n {
		t.Errorf("%d managed resources were seen, want %d", len(s.first), n)
	}

	waits := make([]time.Duration, 0, len(s.first))

	for name, since := range s.first {
		at, ok := s.recorded[name]
		if !ok {
			t.Errorf("managed resource %s has no record of a gate", name)

			at = time.Now()
		}

		waits = append(waits, at.Sub(since))
	}

	slices.Sort(waits)

	last := waits[len(waits)-1]
	t.Logf("managed resources are recorded after %s in the median, after %s at most", waits[len(waits)/2], last)

	if last > recorded {
		t.Errorf("a managed resource has no record of a gate for %s", last)
	}
}

// processes are those of the stack and the peer by their names.
func (f fleet) processes() map[string]int {
	out := map[string]int{}
	for _, p := range running.Processes() {
		out[p.Name()] = p.PID()
	}

	if f.peer != nil {
		out["peer"] = f.peer.PID()
	}

	return out
}

// cpu is the time that processes have had, by their names.
func (f fleet) cpu(t *testing.T) map[string]time.Duration {
	t.Helper()

	out := map[string]time.Duration{}

	for name, pid := range f.processes() {
		spent, err := usage.CPU(pid)
		world.Must(t, err)

		out[name] = spent
	}

	return out
}

// opens is how often circuit breakers of Crossplane's have opened.
func opens(t *testing.T) float64 {
	t.Helper()

	return scrape(t).Sum("circuit_breaker_opens_total")
}

func scrape(t *testing.T) world.Metrics {
	t.Helper()

	families, err := world.Scrape(t.Context(), running.CrossplaneMetricsURL())
	world.Must(t, err)

	return families
}
