// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	given "github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const (
	// parentsPerStand makes them ten stands by default, and two at least.
	parentsPerStand = 1000
	leastStands     = 2
	kindStand       = "Stand"
)

// BenchmarkApproval measures changes of ten composite resources with a managed resource each, one after the other, on a
// whole stack: one that is allowed, one that is held, and the approval of that. The environment variable PARENTS sets a
// thousand times another number. In one operation each is changed once in either way. Nothing is polled for.
//
// From the request of the change until a watcher sees the external object changed (allowed-), from that of one that is
// held until its PendingChange lists it (listed-), from that of the ChangeApproval until the external object is
// changed (approved-), and until the ChangeApproval says Applied (applied-): p50-ms and p99-ms; approved-x is how many
// times as long it takes as an allowed change, at the median.
//
// What is held could be told to the manager by an annotation on what is held, too: an annotation- is the least that this
// takes more, one of as many bytes as the list in the XR's status, which costs no write of its own.
//
// Of an allowed change, a hold, an annotation, and an approval: the writes by service accounts that the API server takes
// (-writes/op), those of our manager among these (-manager-writes/op), Events (-events/op), and the tokens of
// Crossplane's circuit breaker that a composite resource uses (-tokens/op). By default it has a hundred, and gets one a
// second; here it has more, for nobody makes so many changes in so little time.
func BenchmarkApproval(b *testing.B) {
	d := newDesk(b, max(leastStands, parentCount(b)/parentsPerStand))

	for round := 0; b.Loop(); round++ {
		d.allowed.of(b, d, func(name string) []time.Duration { return d.change(b, name, fmt.Sprint("allowed-", round)) })
		d.held.of(b, d, func(name string) []time.Duration { return d.ask(b, name, fmt.Sprint("held-", round)) })
		d.annotated.of(b, d, func(name string) []time.Duration { return d.annotate(b, name) })
		d.approved.of(b, d, func(name string) []time.Duration { return d.approve(b, name, fmt.Sprint("held-", round)) })
	}

	b.ReportMetric(percentile(d.approved.took[0], median)/percentile(d.allowed.took[0], median), "approved-x")

	for name, took := range map[string][]time.Duration{
		"allowed": d.allowed.took[0], "listed": d.held.took[0], "approved": d.approved.took[0], "applied": d.approved.took[1],
	} {
		b.ReportMetric(percentile(took, median), name+"-p50-ms")
		b.ReportMetric(percentile(took, 0.99), name+"-p99-ms")
	}

	for name, p := range map[string]*phase{"allowed": &d.allowed, "hold": &d.held, "annotation": &d.annotated, "approval": &d.approved} {
		p.report(b, name)
	}
}

// desk is a stack with composite resources, and those who change them.
type desk struct {
	*cluster

	watched client.WithWatch
	names   []string
	audit   audit

	// outside are the external objects' sizes, lists what PendingChanges ask for, and ends in which state
	// ChangeApprovals are, by name.
	outside, lists, ends *board

	allowed, held, annotated, approved phase
}

func newDesk(b *testing.B, n int) *desk {
	b.Helper()

	dir := b.TempDir()
	policy, err := filepath.Abs(filepath.Join("testdata", "audit-policy.yaml"))
	log := filepath.Join(dir, "audit.log")

	if err != nil {
		b.Fatal(err)
	}

	s, err := stack.Start(b.Context(), stack.Options{
		Governed: stack.Suite(), ManagerFlags: []string{"--settle=2s"},
		APIServerFlags:  []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log},
		CrossplaneFlags: []string{"--poll-interval=1h"},
	})
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() {
		if err := s.Stop(); err != nil {
			b.Error(err)
		}
	})

	config := s.Config()
	config.QPS = -1

	watched, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		b.Fatal(err)
	}

	d := &desk{cluster: newCluster(b, s), watched: watched, audit: audit{path: log}}
	d.define(b)

	d.outside = d.watch(b, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, func(u *unstructured.Unstructured) string {
		return resource.String(u.Object, "data", "size")
	})
	d.lists = d.watch(b, v1alpha1.GroupVersion().WithKind("PendingChange"), func(u *unstructured.Unstructured) string {
		return asksFor(resource.List(u.Object, "status", "changes"))
	})
	d.ends = d.watch(b, v1alpha1.GroupVersion().WithKind("ChangeApproval"), func(u *unstructured.Unstructured) string {
		return endsAs(resource.List(u.Object, "status", "changes"))
	})

	for i := range n {
		d.names = append(d.names, fmt.Sprint("stand-", i))
	}

	d.open(b)

	return d
}

// asksFor is the value that a list of one change asks for.
func asksFor(changes []any) string {
	if len(changes) != 1 {
		return ""
	}

	e, _ := changes[0].(map[string]any)

	return resource.String(e, "to")
}

// endsAs is the state of the one change of a ChangeApproval.
func endsAs(changes []any) string {
	if len(changes) != 1 {
		return ""
	}

	e, _ := changes[0].(map[string]any)

	return resource.String(e, "state")
}

// define applies what the stands are.
func (d *desk) define(b *testing.B) {
	b.Helper()

	text, err := os.ReadFile(filepath.Join("testdata", "stands.yaml"))
	if err != nil {
		b.Fatal(err)
	}

	for part := range strings.SplitSeq(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), u); err != nil {
			b.Fatal(err)
		}

		eventually(b, u.GetKind()+" "+u.GetName(), func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(d.admin.Create(ctx, u.DeepCopy()))
		})
	}

	d.served(b, kindStand)
	d.inForce(b, "AllowancePolicy", "stands")
}

// open makes the stands, and waits until they are built up, and their gates closed.
func (d *desk) open(b *testing.B) {
	b.Helper()

	for _, name := range d.names {
		made := d.outside.expect(name, "small")

		u := newPrototype(kindStand)
		u.SetNamespace(namespace)
		u.SetName(name)
		u.Object["spec"] = map[string]any{"size": "small", "crossplane": map[string]any{"compositionRef": map[string]any{"name": "stands"}}}

		eventually(b, "a stand", func(ctx context.Context) error { return client.IgnoreAlreadyExists(d.hans.Create(ctx, u.DeepCopy())) })
		d.wait(b, name+" outside", made)
	}

	for _, name := range d.names {
		d.settled(b, name)
	}

	d.audit.since(b)
}

// settled waits until a stand is, with nothing held and nothing under way, and its gate is closed.
func (d *desk) settled(b *testing.B, name string) {
	b.Helper()

	eventually(b, "rest of "+name, func(ctx context.Context) error {
		u := newPrototype(kindStand)
		if err := d.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
			return err
		}

		c, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
		if !strings.HasPrefix(c.Message, given.SettledMessage(resource.Generation(u))) || strings.Contains(c.Message, " held") ||
			!given.Initialized(u) || resource.Annotation(u, v1alpha1.AnnotationHeld) != "" {
			return fmt.Errorf("it says %q", c.Message)
		}

		for _, ref := range resource.Composed(u) {
			m := &unstructured.Unstructured{}
			m.SetGroupVersionKind(ref.GroupVersionKind())

			if err := d.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, m); err != nil {
				return err
			}

			if gate := resource.Annotation(m, v1alpha1.AnnotationGate); !strings.Contains(gate, string(v1alpha1.GateClosed)) {
				return fmt.Errorf("its gate is %q", gate)
			}
		}

		return nil
	})
}

// resize is a request to change the size.
func (d *desk) resize(b *testing.B, as client.Client, name, size string) {
	b.Helper()

	u := newPrototype(kindStand)
	u.SetNamespace(namespace)
	u.SetName(name)

	if err := as.Patch(b.Context(), u, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"size": %q}}`, size))); err != nil {
		b.Fatal(err)
	}
}

// change makes a change that is allowed.
func (d *desk) change(b *testing.B, name, size string) []time.Duration {
	b.Helper()

	seen, began := d.outside.expect(name, size), time.Now()
	d.resize(b, d.hans, name, size)
	took := d.wait(b, "an allowed change of "+name, seen).Sub(began)
	d.settled(b, name)

	return []time.Duration{took}
}

// pendingOf is the name of the PendingChange of a stand.
func pendingOf(name string) string { return pending.Name(gvkOf(kindStand).GroupKind(), name) }

// ask makes a change that is held.
func (d *desk) ask(b *testing.B, name, size string) []time.Duration {
	b.Helper()

	seen, began := d.lists.expect(pendingOf(name), size), time.Now()
	d.resize(b, d.anna, name, size)

	return []time.Duration{d.wait(b, "a list of "+name, seen).Sub(began)}
}

// react is for how long whoever watches a managed resource has to react to a write of it.
const react = 500 * time.Millisecond

// annotate writes what is held on the managed resource that it is held of.
func (d *desk) annotate(b *testing.B, name string) []time.Duration {
	b.Helper()

	u := newPrototype(kindStand)
	if err := d.admin.Get(b.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
		b.Fatal(err)
	}

	list, _ := resource.ConditionOf(u, v1alpha1.ConditionState)

	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.org/held": list.Message}}})
	if err != nil {
		b.Fatal(err)
	}

	began := time.Now()

	for _, ref := range resource.Composed(u) {
		m := &unstructured.Unstructured{}
		m.SetGroupVersionKind(ref.GroupVersionKind())
		m.SetNamespace(namespace)
		m.SetName(ref.Name)

		if err := d.admin.Patch(b.Context(), m, client.RawPatch(types.MergePatchType, patch)); err != nil {
			b.Fatal(err)
		}
	}

	took := time.Since(began)

	time.Sleep(react)

	return []time.Duration{took}
}

// approve approves it.
func (d *desk) approve(b *testing.B, name, size string) []time.Duration {
	b.Helper()

	pch := &v1alpha1.PendingChange{}
	if err := d.admin.Get(b.Context(), client.ObjectKey{Namespace: namespace, Name: pendingOf(name)}, pch); err != nil {
		b.Fatal(err)
	}

	if current := meta.FindStatusCondition(pch.Status.Conditions, v1alpha1.ConditionCurrent); current == nil || current.Status != metav1.ConditionTrue {
		b.Fatalf("the list is not of now: %+v", pch.Status)
	}

	cha := &v1alpha1.ChangeApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + size},
		Spec:       v1alpha1.ChangeApprovalSpec{PendingChange: pch.Name, Digest: pch.Status.Digest, Reason: "CHG-1"},
	}
	seen, ended := d.outside.expect(name, size), d.ends.expect(cha.Name, string(v1alpha1.ApprovalStateApplied))
	began := time.Now()

	if err := d.admin.Create(b.Context(), cha); err != nil {
		b.Fatal(err)
	}

	took := []time.Duration{d.wait(b, "an approved change of "+name, seen).Sub(began), d.wait(b, "the end of "+cha.Name, ended).Sub(began)}
	d.settled(b, name)

	return took
}

// wait waits for something to be seen, and returns when it was.
func (d *desk) wait(b *testing.B, what string, seen <-chan time.Time) time.Time {
	b.Helper()

	timeout := time.NewTimer(cycleTimeout)
	defer timeout.Stop()

	select {
	case at := <-seen:
		return at
	case <-timeout.C:
		b.Fatalf("%s takes longer than %s", what, cycleTimeout)
	case <-b.Context().Done():
		b.Fatal(b.Context().Err())
	}

	return time.Time{}
}

// tokens are those that Crossplane's circuit breaker has counted by now.
func (d *desk) tokens(b *testing.B) float64 {
	b.Helper()

	families, err := world.Scrape(b.Context(), d.stack.CrossplaneMetricsURL())
	if err != nil {
		b.Fatal(err)
	}

	return families.Sum("circuit_breaker_events_total")
}

// phase is what is done with each stand, one after the other, and what that takes.
type phase struct {
	changes int
	took    [][]time.Duration
	calls   calls
	tokens  float64
}

// of does it.
func (p *phase) of(b *testing.B, d *desk, do func(name string) []time.Duration) {
	b.Helper()

	before := d.tokens(b)

	for _, name := range d.names {
		for i, took := range do(name) {
			if len(p.took) == i {
				p.took = append(p.took, nil)
			}

			p.took[i] = append(p.took[i], took)
		}

		p.changes++
	}

	if p.calls == nil {
		p.calls = calls{}
	}

	for name, n := range d.audit.since(b) {
		p.calls[name] += n
	}

	p.tokens += d.tokens(b) - before
}

func (p *phase) report(b *testing.B, name string) {
	b.Helper()

	n := float64(p.changes)
	b.Logf("%s, %d times: %s", name, p.changes, p.calls)

	b.ReportMetric(float64(p.calls.sum(""))/n, name+"-writes/op")
	b.ReportMetric(float64(p.calls.sum(managerName))/n, name+"-manager-writes/op")
	b.ReportMetric(float64(p.calls.events())/n, name+"-events/op")
	b.ReportMetric(p.tokens/n, name+"-tokens/op")
}

// board sees a value of each object of a kind, and tells who waits for one.
type board struct {
	mu    sync.Mutex
	waits map[[2]string]chan time.Time
}

// watch keeps a board of a kind.
func (d *desk) watch(b *testing.B, gvk schema.GroupVersionKind, value func(*unstructured.Unstructured) string) *board {
	b.Helper()

	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)

	out := &board{waits: map[[2]string]chan time.Time{}}
	world.Watch(ctx, d.watched, gvk, func(u *unstructured.Unstructured, _ watch.EventType) { out.see(u.GetName(), value(u)) })

	return out
}

func (o *board) see(name, value string) {
	now := time.Now()

	o.mu.Lock()
	defer o.mu.Unlock()

	if seen, ok := o.waits[[2]string{name, value}]; ok {
		delete(o.waits, [2]string{name, value})

		seen <- now
	}
}

// expect hands over when an object comes to have a value that it has not had before.
func (o *board) expect(name, value string) <-chan time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()

	seen := make(chan time.Time, 1)
	o.waits[[2]string{name, value}] = seen

	return seen
}
