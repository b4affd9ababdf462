// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// Whatever is written to a window has Crossplane compose every XR anew that
// requires it.
func TestAWindowIsWrittenToWhenItIsOverAndSeldomBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &v1alpha1.UpgradeAllowance{
			ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "1"},
			Spec:       v1alpha1.UpgradeAllowanceSpec{ValidUntil: metav1.NewTime(time.Now().Add(3 * time.Hour))},
		}
		b := newBook(t, w)

		uses, stop := b.start()
		use := func(n int) {
			for range n {
				uses.Count(upgradeallowance.Use{Windows: []upgradeallowance.Key{{Name: "w", UID: "1"}}})
				time.Sleep(time.Second)
			}
		}

		use(100)
		time.Sleep(2 * keepEvery)
		b.check("after 100 uses they are kept, elsewhere", page{Kept: 100, Events: 1})

		was := b.reads.Load()

		time.Sleep(writeEvery)
		b.check("after an hour they are written", page{Kept: 100, Writes: 1, Uses: 100, Used: true, Events: 1})

		// Also of the check, and of the write.
		if n := b.reads.Load() - was; n > int64(writeEvery/readEvery)+5 {
			t.Errorf("the window was read %d times in %s", n, writeEvery)
		}

		use(49)
		stop(func() { use(1) })
		b.check("when a manager ends its uses are kept, with those of when it still served", page{Kept: 150, Writes: 1, Uses: 100, Used: true, Events: 1})

		uses, stop = b.start()

		use(1)
		time.Sleep(2 * keepEvery)
		b.check("the next one goes on", page{Kept: 151, Writes: 1, Uses: 100, Used: true, Events: 1})
		stop()

		_, stop = b.start()

		time.Sleep(time.Until(w.Spec.ValidUntil.Add(-time.Minute)))
		b.check("and has an hour too", page{Kept: 151, Writes: 2, Uses: 151, Used: true, Events: 1})

		stop()
		uses, stop = b.start()

		use(1)
		stop()

		_, stop = b.start()

		time.Sleep(time.Until(w.Spec.ValidUntil.Add(checkEvery + time.Second)))
		b.check("whoever is there when the window is over writes all", page{Kept: 152, Writes: 3, Uses: 152, Used: true, Events: 1})
		stop()

		if err := b.Delete(t.Context(), w.DeepCopy()); err != nil {
			t.Fatal(err)
		}

		_, stop = b.start()

		synctest.Wait()
		stop()

		if got := b.kept(); len(got) > 0 {
			t.Errorf("of a window that is gone there is left %v", got)
		}
	})
}

// book is where all is written, with one window.
type book struct {
	client.WithWatch

	t      *testing.T
	window *v1alpha1.UpgradeAllowance

	// writes of its status, and reads of it.
	writes, reads atomic.Int64
}

// page is what is written there.
type page struct {
	// Kept is what managers leave to each other. Uses, and Used, are in the status
	// of the window, after so many Writes.
	Kept, Writes, Uses int64
	Used               bool
	Events             int
}

func newBook(t *testing.T, w *v1alpha1.UpgradeAllowance) *book {
	t.Helper()

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, eventsv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	b := &book{t: t, window: w}
	b.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(w).WithStatusSubresource(w).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*v1alpha1.UpgradeAllowance); ok {
					b.reads.Add(1)
				}

				return c.Get(ctx, key, obj, opts...)
			},
			SubResourcePatch: func(
				ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
			) error {
				b.writes.Add(1)

				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()

	return b
}

// start has a manager count, until it is stopped. Late is what happens before it
// serves no more.
func (b *book) start() (uses *Uses, stop func(late ...func())) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	uses = NewUses(b, client.ObjectKey{Namespace: "home", Name: "uses"}, logr.Discard())

	go func() {
		defer close(done)

		_ = uses.Start(ctx)
	}()

	return uses, func(late ...func()) {
		cancel()
		<-done

		for _, do := range late {
			do()
		}

		uses.Finish(b.t.Context())
	}
}

func (b *book) kept() map[types.UID]int64 {
	b.t.Helper()

	lease := &coordinationv1.Lease{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: "home", Name: "uses"}, lease); err != nil {
		b.t.Fatal(err)
	}

	return read(lease)
}

func (b *book) check(when string, want page) {
	b.t.Helper()
	synctest.Wait()

	live, events := &v1alpha1.UpgradeAllowance{}, &eventsv1.EventList{}
	if err := errors.Join(b.Get(b.t.Context(), client.ObjectKeyFromObject(b.window), live), b.List(b.t.Context(), events)); err != nil {
		b.t.Fatal(err)
	}

	got := page{
		Kept: b.kept()["1"], Writes: b.writes.Load(), Uses: live.Status.Uses,
		Used: meta.IsStatusConditionTrue(live.Status.Conditions, v1alpha1.ConditionUsed), Events: len(events.Items),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("%s: -want, +got:\n%s", when, diff)
	}
}

func TestReplicasDoNotWriteToAWindowOneAfterTheOther(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	by := func(manager string, ago time.Duration) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(now.Add(-ago))

		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: "status", Time: &at}
	}

	cases := map[string]struct {
		reason     string
		until, due time.Duration
		entries    []metav1.ManagedFieldsEntry
		want       bool
	}{
		"NotDue": {reason: "It is not time.", until: 2 * time.Hour, due: time.Second},
		"Due":    {reason: "It is.", until: 2 * time.Hour, want: true},
		"Other":  {reason: "Another replica has written its own count.", until: 2 * time.Hour, entries: []metav1.ManagedFieldsEntry{by(FieldManager, writeEvery-time.Second)}},
		"Before": {reason: "That is some time ago.", until: 2 * time.Hour, entries: []metav1.ManagedFieldsEntry{by(FieldManager, writeEvery)}, want: true},
		"Leader": {reason: "What others write is no count.", until: 2 * time.Hour, entries: []metav1.ManagedFieldsEntry{by("kausality", time.Second)}, want: true},
		"Over":   {reason: "When it is over each writes what it has.", due: time.Hour, entries: []metav1.ManagedFieldsEntry{by(FieldManager, time.Second)}, want: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &v1alpha1.UpgradeAllowance{
				ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.entries},
				Spec:       v1alpha1.UpgradeAllowanceSpec{ValidUntil: metav1.NewTime(now.Add(tc.until))},
			}
			if got := toWrite(w, now.Add(tc.due), now); got != tc.want {
				t.Errorf("%s\ntoWrite: %t", tc.reason, got)
			}
		})
	}
}
