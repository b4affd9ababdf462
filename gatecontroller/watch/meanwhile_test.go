// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// cacheOf is the cache of Watches.
func cacheOf(t *testing.T, w *Watches) *fixture.Cache {
	t.Helper()

	c, ok := w.cache.(*fixture.Cache)
	if !ok {
		t.Fatalf("the cache is a %T", w.cache)
	}

	return c
}

func TestObjectsOfANameAreReturnedOnceAllAreKnown(t *testing.T) {
	f := watches(t, *fixture.Parse(t, "{apiVersion: example.org/v1, kind: Bucket, metadata: {name: b}}"))
	kinds := served("Bucket", "Shop")
	informer := controllertest.NewFakeInformer()
	cacheOf(t, f.Watches).InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{kinds[0].GVK: informer}

	if err := f.Watches.Run(t.Context(), kinds); err != nil {
		t.Fatal(err)
	}

	if list, err := f.Watches.Named(t.Context(), "Bucket"); !errors.Is(err, errUnknown) {
		t.Errorf("before the informer has synced: %d objects, %v", len(list), err)
	}

	// Another kind is not waited for.
	if _, err := f.Watches.Named(t.Context(), "Shop"); err != nil {
		t.Errorf("of a kind whose informer has synced: %v", err)
	}

	informer.Synced()

	if list, err := f.Watches.Named(t.Context(), "Bucket"); err != nil || len(list) != 1 {
		t.Errorf("after the informer has synced: %d objects, %v", len(list), err)
	}
}

func TestAllKindsStopBeforeAnyIsReleased(t *testing.T) {
	f := watches(t)
	release := f.Watches.Release

	f.Watches.Release = func(ctx context.Context, gvk schema.GroupVersionKind) error {
		for running := range f.Watches.running {
			if running.Kind != "Other" {
				t.Errorf("%s is released while %s runs, which may have its objects wait again", gvk.Kind, running.Kind)
			}
		}

		return release(ctx, gvk)
	}

	if err := f.Watches.Run(t.Context(), served("Bucket", "Shop", "Other")); err != nil {
		t.Fatal(err)
	}

	if err := f.Watches.Prune(t.Context(), served("Other"), served("Bucket", "Shop", "Other")); err != nil {
		t.Fatal(err)
	}

	slices.Sort(f.released)
	same(t, "released", []string{"Bucket", "Shop"}, f.released)
}

// TestAKindThatIsNeededAgainWhileItIsFoundIdleIsWatched as it is by the parent of a new managed resource.
func TestAKindThatIsNeededAgainWhileItIsFoundIdleIsWatched(t *testing.T) {
	f := watches(t)
	gvk := served("Shop")[0].GVK

	cacheOf(t, f.Watches).Listing = func(kind string) {
		if kind == gvk.Kind {
			if err := f.Watches.RunOwner(t.Context(), gvk); err != nil {
				t.Error(err)
			}
		}
	}

	if err := errors.Join(f.Watches.Run(t.Context(), served("Bucket")), f.Watches.RunOwner(t.Context(), gvk)); err != nil {
		t.Fatal(err)
	}

	f.now = f.now.Add(ownerIdle)

	if err := f.Watches.Prune(t.Context(), served("Bucket"), served("Bucket", "Shop")); err != nil {
		t.Fatal(err)
	}

	same(t, "watched", []string{"Bucket", "Shop"}, f.kinds())
	same(t, "released", nil, f.released)
}

func TestAControllerThatFailsIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watches(t)
		c := cacheOf(t, f.Watches)
		c.Synced = new(bool)

		if err := f.Watches.Run(t.Context(), served("Shop")); err != nil {
			t.Fatal(err)
		}

		synctest.Wait()
		same(t, "watched after the controller has failed", []string{}, f.kinds())

		*c.Synced = true

		if err := f.Watches.Run(t.Context(), served("Shop")); err != nil {
			t.Fatal(err)
		}

		synctest.Wait()
		same(t, "watched again", []string{"Shop"}, f.kinds())
		f.Watches.Stop()
	})
}

// TestAWindowIsNoNewsToAKindThatWasReleased though its handler remains: to list a kind would watch it again.
func TestAWindowIsNoNewsToAKindThatWasReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listed []string

		f := watches(t)
		c := cacheOf(t, f.Watches)
		c.Listing = func(kind string) { listed = append(listed, kind) }

		if err := f.Watches.Run(t.Context(), served("Bucket")); err != nil {
			t.Fatal(err)
		}

		synctest.Wait()

		informer, err := c.FakeInformerFor(t.Context(), &v1alpha1.UpgradeAllowance{})
		if err != nil {
			t.Fatal(err)
		}

		window := fixture.Documents[v1alpha1.UpgradeAllowance](t, `{metadata: {name: w}, spec: {serviceAccount: "system:serviceaccount:a:b",
			selector: {matchLabels: {env: prod}}, allow: [{relation: External, mutations: [Update]}]}}`)

		informer.Add(&window[0])
		same(t, "listed while it is watched", []string{"Bucket"}, listed)

		if err := f.Watches.Prune(t.Context(), nil, served("Bucket")); err != nil {
			t.Fatal(err)
		}

		informer.Add(&window[0])
		same(t, "listed in all", []string{"Bucket"}, listed)
		f.Watches.Stop()
	})
}
