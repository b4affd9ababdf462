// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// TestAWindowIsNotReportedTwiceWhileTheCacheIsBehind has a cache that shows a
// status of before our last write, as happens for a moment.
func TestAWindowIsNotReportedTwiceWhileTheCacheIsBehind(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, eventsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	u := &v1alpha1.UpgradeAllowance{
		ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "w"},
		Spec: v1alpha1.UpgradeAllowanceSpec{
			ServiceAccount: "system:serviceaccount:a:b",
			ValidFrom:      metav1.NewTime(start.Add(time.Second)), ValidUntil: metav1.NewTime(start.Add(2 * time.Hour)),
			Allow: []v1alpha1.Permission{{Kind: "Task", Mutations: []string{"spec"}}},
		},
	}
	meta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Started"})
	meta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoPods})

	live := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(u).WithObjects(u).Build()
	key := client.ObjectKeyFromObject(u)

	stale := &v1alpha1.UpgradeAllowance{}
	if err := live.Get(t.Context(), key, stale); err != nil {
		t.Fatal(err)
	}

	behind := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stale).Build()

	var (
		cached client.Reader
		at     time.Duration
	)

	now := func() time.Time { return start.Add(at) }
	w := &Reconciler{now: now, targets: &targets{}, client: object.NewClient(interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return cached.Get(ctx, key, obj, opts...)
		},
	}), 1, now)}

	for _, look := range []struct {
		reader client.Reader
		at     time.Duration
		late   bool
	}{
		{behind, 0, false},
		{behind, time.Second, true},
		{live, 2 * time.Second, false},
	} {
		cached, at = look.reader, look.at

		if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); object.Outdated(err) != look.late || err != nil && !look.late {
			t.Fatalf("after %s: %v", look.at, err)
		}
	}

	list := &eventsv1.EventList{}
	if err := live.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	got := make([]string, 0, len(list.Items))
	for _, e := range list.Items {
		got = append(got, e.Reason)
	}

	if diff := cmp.Diff([]string{"KausalityWindowResumed"}, got); diff != "" {
		t.Errorf("events: -want, +got:\n%s", diff)
	}
}

// TestAWindowIsReportedThoughWeAreStoppedMeanwhile because its event comes before the status that says so.
func TestAWindowIsReportedThoughWeAreStoppedMeanwhile(t *testing.T) {
	for _, at := range []string{"the event", "the status"} {
		t.Run("at "+at, func(t *testing.T) {
			refuse := at
			w, c := looking(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if refuse == "the event" {
						return fixture.ErrRefused
					}

					return c.Create(ctx, obj, opts...)
				},
				SubResourcePatch: func(
					ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
				) error {
					if refuse == "the status" {
						return fixture.ErrRefused
					}

					return c.SubResource(sub).Patch(ctx, obj, p, opts...)
				},
			}, nil, windowText("w", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z", ""))

			for _, refuse = range []string{at, ""} {
				_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "w"}})
				if errors.Is(err, fixture.ErrRefused) != (refuse != "") {
					t.Fatalf("refused %q: %v", refuse, err)
				}
			}

			u, list := &v1alpha1.UpgradeAllowance{}, &eventsv1.EventList{}
			if err := errors.Join(c.Get(t.Context(), client.ObjectKey{Name: "w"}, u), c.List(t.Context(), list)); err != nil {
				t.Fatal(err)
			}

			if n := len(list.Items); n != 1 || !u.Status.Active {
				t.Errorf("%d events, want 1; active %t", n, u.Status.Active)
			}
		})
	}
}
