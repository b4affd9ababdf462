// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// fakeWatches are Watches of a cache with objects, which record what they do.
type fakeWatches struct {
	Watches *Watches

	now               time.Time
	released, dropped []string
	refuse            bool
}

func watches(t *testing.T, list ...unstructured.Unstructured) *fakeWatches {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	f := &fakeWatches{now: time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)}
	f.Watches = NewWatches(&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}, Objects: list}, func() time.Time { return f.now })
	f.Watches.Object = func(schema.GroupVersionKind) reconcile.Reconciler {
		return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	}
	f.Watches.Release = func(_ context.Context, gvk schema.GroupVersionKind) error {
		if f.refuse {
			return fixture.ErrRefused
		}

		f.released = append(f.released, gvk.Kind)

		return nil
	}
	f.Watches.Dropped = func(gk schema.GroupKind) { f.dropped = append(f.dropped, gk.Kind) }

	t.Cleanup(f.Watches.Stop)

	return f
}

// kinds are those that are watched, by name.
func (f *fakeWatches) kinds() []string {
	out := make([]string, 0, 2)
	for _, gvk := range f.Watches.Kinds() {
		out = append(out, gvk.Kind)
	}

	slices.Sort(out)

	return out
}

func served(kinds ...string) []kind.Served {
	out := make([]kind.Served, len(kinds))
	for i, k := range kinds {
		out[i] = kind.Served{GVK: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: k}, Managed: k == "Bucket"}
	}

	return out
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, -want, +got:\n%s", what, diff)
	}
}

func TestAKindIsKnownInTheVersionThatIsWatched(t *testing.T) {
	f := watches(t)
	kinds := served("Bucket", "Shop")

	if err := f.Watches.Run(t.Context(), kinds[:1]); err != nil {
		t.Fatal(err)
	}

	if got, ok := f.Watches.Known(t.Context(), kinds[0].GVK.GroupKind()); !ok || got != kinds[0].GVK {
		t.Errorf("of one that is watched: %v, %v", got, ok)
	}

	if got, ok := f.Watches.Known(t.Context(), kinds[1].GVK.GroupKind()); ok {
		t.Errorf("of one that is not: %v", got)
	}
}

func TestAKindIsReleasedBeforeItIsNoLongerWatched(t *testing.T) {
	f := watches(t)
	ctx := t.Context()

	for range 2 { // What is watched is not started again.
		if err := f.Watches.Run(ctx, served("Bucket", "Shop")); err != nil {
			t.Fatal(err)
		}
	}

	same(t, "watched", []string{"Bucket", "Shop"}, f.kinds())

	// What cannot be released goes on being watched.
	f.refuse = true
	if err := f.Watches.Prune(ctx, served("Bucket"), served("Bucket", "Shop")); !errors.Is(err, fixture.ErrRefused) {
		t.Errorf("error %v", err)
	}

	same(t, "watched though it is not released", []string{"Bucket", "Shop"}, f.kinds())

	f.refuse = false
	if err := f.Watches.Prune(ctx, served("Bucket"), served("Bucket", "Shop")); err != nil {
		t.Fatal(err)
	}

	same(t, "watched", []string{"Bucket"}, f.kinds())
	same(t, "released", []string{"Shop"}, f.released)
	same(t, "dropped", []string{"Shop"}, f.dropped)

	// The same objects are reconciled in another version.
	newer := served("Bucket")
	newer[0].GVK.Version = "v2"

	if err := errors.Join(f.Watches.Run(ctx, newer), f.Watches.Prune(ctx, newer, newer)); err != nil {
		t.Fatal(err)
	}

	if got := f.Watches.Kinds(); len(got) != 1 || got[0].Version != "v2" {
		t.Errorf("watched: %v", got)
	}

	same(t, "released", []string{"Shop"}, f.released)

	f.Watches.Stop()

	if err := f.Watches.Run(ctx, served("Shop")); !errors.Is(err, ErrEnded) {
		t.Errorf("a kind is watched at the end: %v", err)
	}
}

func TestOwnersAreWatchedAsLongAsSomethingWaitsForUs(t *testing.T) {
	waiting := *fixture.Parse(t, "{apiVersion: example.org/v1, kind: Shop, metadata: {name: s, finalizers: ["+v1alpha1.Finalizer+"]}}")

	cases := map[string]struct {
		reason   string
		objects  []unstructured.Unstructured
		kinds    []kind.Served
		served   []kind.Served
		idle     time.Duration
		watched  []string
		released []string
	}{
		"Used":    {reason: "Who was needed just now is watched.", kinds: served("Bucket"), served: served("Bucket", "Shop"), watched: []string{"Bucket", "Shop"}},
		"Idle":    {reason: "Who was not for a while is not.", kinds: served("Bucket"), served: served("Bucket", "Shop"), idle: ownerIdle, watched: []string{"Bucket"}, released: []string{"Shop"}},
		"Waiting": {reason: "Who waits for us is.", objects: []unstructured.Unstructured{waiting}, kinds: served("Bucket"), served: served("Bucket", "Shop"), idle: ownerIdle, watched: []string{"Bucket", "Shop"}},
		"Gone":    {reason: "A kind that is no longer served is not.", kinds: served("Bucket"), served: served("Bucket"), watched: []string{"Bucket"}, released: []string{"Shop"}},
		"NoGates": {reason: "Without gates nothing waits.", kinds: served("Other"), served: served("Other", "Shop"), watched: []string{}, released: []string{"Bucket", "Shop"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := watches(t, tc.objects...)
			gvk := served("Shop")[0].GVK

			if err := errors.Join(f.Watches.Run(t.Context(), served("Bucket")), f.Watches.RunOwner(t.Context(), gvk), f.Watches.RunOwner(t.Context(), gvk)); err != nil {
				t.Fatal(err)
			}

			if !f.Watches.IsOwner(gvk) || f.Watches.IsOwner(served("Bucket")[0].GVK) {
				t.Errorf("%s\nowners: %v", tc.reason, f.Watches.owners)
			}

			f.now = f.now.Add(tc.idle)

			if err := f.Watches.Prune(t.Context(), tc.kinds, tc.served); err != nil {
				t.Fatal(err)
			}

			slices.Sort(f.released)
			same(t, tc.reason+"\nwatched", tc.watched, f.kinds())
			same(t, tc.reason+"\nreleased", tc.released, f.released)
		})
	}
}

func TestObjectsThatNothingHappenedToAreAskedFor(t *testing.T) {
	shop := func(name, namespace string) unstructured.Unstructured {
		u := unstructured.Unstructured{}
		u.SetAPIVersion("example.org/v1")
		u.SetKind("Shop")
		u.SetName(name)
		u.SetNamespace(namespace)

		return u
	}

	cases := map[string]struct {
		reason string
		ask    func(*Watches) error
		want   []string
	}{
		"Gates": {"Those that are named.", func(w *Watches) error {
			w.Enqueue(map[schema.GroupKind][]types.NamespacedName{
				{Group: "example.org", Kind: "Shop"}: {{Namespace: "a", Name: "x"}}, {Group: "example.org", Kind: "Other"}: {{Name: "y"}},
			})

			return nil
		}, []string{"a/x"}},
		"All": {"All that are known.", func(w *Watches) error { return w.EnqueueAll(context.Background()) }, []string{"a/x", "b/y"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := watches(t, shop("x", "a"), shop("y", "b"))
				seen := make(chan string, 10)
				f.Watches.Object = func(schema.GroupVersionKind) reconcile.Reconciler {
					return reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
						seen <- req.String()

						return reconcile.Result{}, nil
					})
				}

				if err := f.Watches.Run(t.Context(), served("Shop")); err != nil {
					t.Fatal(err)
				}

				synctest.Wait()

				if err := tc.ask(f.Watches); err != nil {
					t.Fatal(err)
				}

				got := make([]string, 0, len(tc.want))

				for range tc.want {
					select {
					case key := <-seen:
						got = append(got, key)
					case <-time.After(time.Minute):
						t.Fatalf("%s\nseen: %v", tc.reason, got)
					}
				}

				slices.Sort(got)
				same(t, tc.reason, tc.want, got)
				f.Watches.Stop()
			})
		})
	}
}
