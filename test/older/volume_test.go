// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package older_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/provider/external"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// claimed is a claim, its XR and its managed resource, which has the XR's name, as
// has the external object.
type claimed struct {
	client.WithWatch

	hans, anna client.Client
	claim      *unstructured.Unstructured
}

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: name}
}

func managedKind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "old.example.org", Version: "v1", Kind: name}
}

var defined sync.Once

// define applies the definitions, once, and returns a client of the administrator.
func define(t *testing.T) client.WithWatch {
	t.Helper()

	admin := world.Connect(t, running.Config())

	defined.Do(func() {
		text, err := os.ReadFile("testdata/volumes.yaml")
		if err != nil {
			t.Fatal(err)
		}

		for _, u := range world.Parse(t, text) {
			world.Apply(t, admin, u)
		}
	})

	return admin
}

// newClaimed applies the definitions, once, and has hans claim a disk of size 1.
func newClaimed(t *testing.T, name string) claimed {
	t.Helper()

	c := claimed{hans: world.ConnectAs(t, running, "hans"), anna: world.ConnectAs(t, running, "anna")}

	c.WithWatch = define(t)

	c.claim = world.Prototype(kind("DiskClaim"))
	c.claim.SetNamespace("default")
	c.claim.SetName(name)
	c.claim.SetAnnotations(map[string]string{"ticket": "DISK-1"})
	c.claim.Object["spec"] = map[string]any{"size": int64(1)}

	world.Eventually(t, "a claim", func(ctx context.Context) error { return c.hans.Create(ctx, c.claim.DeepCopy()) })

	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.dump(context.WithoutCancel(t.Context())))
		}
	})

	return c
}

// all reads the claim, the XR and the managed resource.
func (c claimed) all(ctx context.Context) (claim, xr, disk *unstructured.Unstructured, err error) {
	claim, xr, disk = world.Prototype(kind("DiskClaim")), world.Prototype(kind("XDisk")), world.Prototype(managedKind("Disk"))

	if err := c.Get(ctx, client.ObjectKeyFromObject(c.claim), claim); err != nil {
		return nil, nil, nil, err
	}

	key := client.ObjectKey{Name: resource.String(claim.Object, "spec", "resourceRef", "name")}
	if err := c.Get(ctx, key, xr); err != nil {
		return claim, nil, nil, err
	}

	return claim, xr, disk, c.Get(ctx, key, disk)
}

// dump shows them.
func (c claimed) dump(ctx context.Context) string {
	var out strings.Builder

	claim, xr, disk, err := c.all(ctx)
	for _, u := range []*unstructured.Unstructured{claim, xr, disk} {
		if u == nil {
			continue
		}

		u.SetManagedFields(nil)

		raw, err := sigsyaml.Marshal(u.Object)
		fmt.Fprintf(&out, "---\n%s%v\n", raw, err)

		for _, call := range outside.Changes(u.GetName()) {
			fmt.Fprintln(&out, call)
		}
	}

	fmt.Fprintln(&out, err)

	return out.String()
}

// settled checks that nothing is allowed any more, that the gate is closed to all
// but Observe, that the provider is content with it, and which size is outside.
func (c claimed) settled(size int64) func(context.Context) error {
	return func(ctx context.Context) error {
		claim, xr, disk, err := c.all(ctx)
		if err != nil {
			return err
		}

		for _, u := range []*unstructured.Unstructured{claim, xr, disk} {
			if err := served(u, xr); err != nil {
				return err
			}

			if !resource.Ready(u) {
				return fmt.Errorf("%s is not ready: %w", u.GetKind(), world.ErrOther)
			}
		}

		return errors.Join(closed(disk, "Observe"), isOutside(disk.GetName(), size),
			synced(claim, "True"), synced(xr, "True"), synced(disk, "True"))
	}
}

// served checks that an object carries no allowance but, on a claim, what its XR has
// used: of a claim Crossplane 1.20 does not say which generation it has seen.
func served(u, xr *unstructured.Unstructured) error {
	list, err := allowance.Parse(u)
	if err != nil {
		return err
	}

	rec, err := allowance.ParseRecord(xr)
	if err != nil {
		return err
	}

	for _, a := range list {
		if !resource.IsClaim(u) || !allowance.Used(rec, a) {
			return fmt.Errorf("%s carries an allowance of %s %s of generation %d: %w", u.GetKind(), a.Kind, a.Mutation, a.Generation, world.ErrOther)
		}
	}

	return nil
}

// closed checks that a gate is closed with a set.
func closed(u *unstructured.Unstructured, set ...string) error {
	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil {
		return fmt.Errorf("the gate is %+v (%w)", rec, errors.Join(err, world.ErrOther))
	}

	if got := resource.Strings(u.Object, "spec", "managementPolicies"); rec.State != v1alpha1.GateClosed || !slices.Equal(got, set) {
		return fmt.Errorf("the gate is %s with %v, want %v: %w", rec.State, got, set, world.ErrOther)
	}

	return nil
}

// synced checks the condition Synced: its status, and that it is of no generation.
func synced(u *unstructured.Unstructured, status string) error {
	got, ok := resource.ConditionOf(u, resource.ConditionSynced)
	if !ok || got.Status != status || got.ObservedGeneration != 0 {
		return fmt.Errorf("condition Synced is %+v, want %s: %w", got, status, world.ErrOther)
	}

	return nil
}

// isOutside checks the size of an external object.
func isOutside(name string, size int64) error {
	state, ok := outside.State(name)
	if !ok || fmt.Sprint(state["size"]) != strconv.FormatInt(size, 10) {
		return fmt.Errorf("%v (%t) is outside, want size %d: %w", state, ok, size, world.ErrOther)
	}

	return nil
}

// changes counts what changed an external object.
func changes(name string, verb external.Verb) int {
	n := 0

	for _, c := range outside.Changes(name) {
		if c.Verb == verb {
			n++
		}
	}

	return n
}

// resize changes the size of the claim, with a ticket or without.
func (c claimed) resize(t *testing.T, as client.Client, size int64, ticket string) {
	t.Helper()

	if err := as.Patch(t.Context(), c.claim.DeepCopy(),
		world.Merge(fmt.Sprintf(`{"metadata": {"annotations": {"ticket": %s}}, "spec": {"size": %d}}`, ticket, size))); err != nil {
		t.Fatal(err)
	}
}

// stays checks for a while, in which the provider looks several times, that
// something does not change.
func stays(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()

	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := check(t.Context()); err != nil {
			t.Fatalf("%s did not stay: %v", what, err)
		}
	}
}

// history remembers the sets that a disk had, and what its provider said of them.
type history struct {
	mu     sync.Mutex
	sets   []string
	denied []string
}

// follow remembers those of a disk from now on.
func (c claimed) follow(t *testing.T, name string) *history {
	t.Helper()

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(managedKind("Disk"))

	w, err := c.Watch(t.Context(), list, client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(w.Stop)

	h := &history{}

	go func() {
		for e := range w.ResultChan() {
			if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Deleted {
				h.add(u)
			}
		}
	}()

	return h
}

func (h *history) add(u *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()

	set := strings.Join(resource.Strings(u.Object, "spec", "managementPolicies"), ",")
	if len(h.sets) == 0 || h.sets[len(h.sets)-1] != set {
		h.sets = append(h.sets, set)
	}

	if c, ok := resource.ConditionOf(u, resource.ConditionSynced); ok && c.Status != "True" {
		h.denied = append(h.denied, set+": "+c.Message)
	}
}

// seen returns the sets so far, and what the provider had against them.
func (h *history) seen() (sets, denied []string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	return slices.Clone(h.sets), slices.Clone(h.denied)
}
