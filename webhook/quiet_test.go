// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/window"
)

// Whatever is written to a window has Crossplane compose every XR anew that
// requires it.
func TestAWindowIsWrittenToWhenItIsOverAndSeldomBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}

		if err := eventsv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}

		w := &v1alpha1.UpgradeAllowance{
			ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "1"},
			Spec:       v1alpha1.UpgradeAllowanceSpec{ValidUntil: metav1.NewTime(time.Now().Add(30 * time.Minute))},
		}

		var writes atomic.Int64

		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w).WithStatusSubresource(w).
			WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(
				ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
			) error {
				writes.Add(1)

				return c.SubResource(sub).Patch(ctx, obj, patch, opts...) //nolint:wrapcheck // As the client does.
			}}).Build()

		ctx, cancel := context.WithCancel(t.Context())

		uses := NewUses(c, logr.Discard())
		go func() { _ = uses.Start(ctx) }()

		use := func(n int) {
			for range n {
				uses.Count(window.Use{Windows: []window.Key{{Name: "w", UID: "1"}}})
				time.Sleep(time.Second)
			}
		}

		type state struct {
			Writes, Uses int64
			Used         bool
			Events       int
		}

		check := func(when string, want state) {
			t.Helper()

			live, events := &v1alpha1.UpgradeAllowance{}, &eventsv1.EventList{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(w), live); err != nil {
				t.Fatal(err)
			}

			if err := c.List(ctx, events); err != nil {
				t.Fatal(err)
			}

			got := state{
				Writes: writes.Load(), Uses: live.Status.Uses,
				Used: meta.IsStatusConditionTrue(live.Status.Conditions, v1alpha1.ConditionUsed), Events: len(events.Items),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", when, diff)
			}
		}

		use(100)
		check("after 100 uses in as many seconds", state{Events: 1})

		time.Sleep(9 * time.Minute)
		check("after ten minutes they are written", state{Writes: 1, Uses: 100, Used: true, Events: 1})

		use(100)
		time.Sleep(10 * time.Minute)
		check("after ten more, once", state{Writes: 2, Uses: 200, Used: true, Events: 1})

		use(1)
		check("then not yet", state{Writes: 2, Uses: 200, Used: true, Events: 1})

		time.Sleep(time.Until(w.Spec.ValidUntil.Add(lookEvery + time.Second)))
		check("but when the window is over", state{Writes: 3, Uses: 201, Used: true, Events: 1})

		cancel()
		synctest.Wait()
	})
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
		"NotDue": {reason: "It is not time.", until: time.Hour, due: time.Second},
		"Due":    {reason: "It is.", until: time.Hour, want: true},
		"Other":  {reason: "Another replica has written its own count.", until: time.Hour, entries: []metav1.ManagedFieldsEntry{by(FieldManager, writeEvery-time.Second)}},
		"Before": {reason: "That is some time ago.", until: time.Hour, entries: []metav1.ManagedFieldsEntry{by(FieldManager, writeEvery)}, want: true},
		"Leader": {reason: "What others write is no count.", until: time.Hour, entries: []metav1.ManagedFieldsEntry{by("kausality", time.Second)}, want: true},
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
