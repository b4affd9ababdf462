// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// TestWhatTheCacheLacksIsReadLive and is not taken to be gone.
func TestWhatTheCacheLacksIsReadLive(t *testing.T) {
	want := []string{"db spec.forProvider.color of corner-x", "other spec.size of corner-x"}

	for _, name := range []string{"Store corner", "XStore corner-x", "Instance db"} {
		t.Run(name, func(t *testing.T) {
			h := heldBelowClaim(t)
			h.change(t, "XStore corner-x", lists(instance("other", "spec.size")))
			h.lacking[name] = true
			h.restart(t)

			h.run(t)

			if diff := cmp.Diff(want, h.lines(t)); diff != "" || !slices.Contains(h.live, name) {
				t.Errorf("read live: %v, -want, +got:\n%s", h.live, diff)
			}
		})
	}
}

// TestAPendingChangeThatIsAnotherByNowIsNotDeleted: what it says would be lost.
func TestAPendingChangeThatIsAnotherByNowIsNotDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// meanwhile happens before it is deleted.
		meanwhile func(t *testing.T, h *harness, pch *v1alpha1.PendingChange)
		goes      bool
	}{
		"Same": {"Its time has come.", func(*testing.T, *harness, *v1alpha1.PendingChange) {}, true},
		"Changed": {"A replica has refused something.", func(t *testing.T, h *harness, pch *v1alpha1.PendingChange) {
			t.Helper()

			pch.Status.Refused = []v1alpha1.RefusedChange{{Field: "create", Digest: sha("refused")}}
			if err := h.client.Status().Update(t.Context(), pch); err != nil {
				t.Fatal(err)
			}
		}, false},
		"MadeAgain": {"It was deleted, and made again.", func(t *testing.T, h *harness, pch *v1alpha1.PendingChange) {
			t.Helper()

			was := pch.ResourceVersion
			if err := h.client.Delete(t.Context(), pch); err != nil {
				t.Fatal(err)
			}

			pch.ResourceVersion, pch.UID = "", "again"
			err := h.client.Create(t.Context(), pch)

			for pch.ResourceVersion != was && err == nil { // Versions may have started over.
				err = h.client.Update(t.Context(), pch)
			}

			if err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := heldBelowClaim(t)
			h.change(t, "Instance db", holding())
			h.change(t, "XStore corner-x", lists())
			h.observe(t, "Instance db", "XStore corner-x")

			h.now = h.now.Add(keptFor)
			writing, _ := h.Reconciler.Client.(client.WithWatch)
			h.Reconciler.Client = interceptor.NewClient(writing, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					tc.meanwhile(t, h, h.pch(t)) //nolint:contextcheck // That of the test.

					return c.Delete(ctx, obj, opts...)
				},
			})

			_, err := h.Reconciler.Reconcile(t.Context(), pending.KeyOfObject(h.get(t, "Store corner")))
			if gone := h.pch(t) == nil; gone != tc.goes || object.Outdated(err) == tc.goes || err != nil && tc.goes {
				t.Errorf("%s\nit is gone: %t, %v", tc.reason, gone, err)
			}
		})
	}
}

// queued takes the roots from a queue.
func queued(q queue) []string {
	var out []string

	for q.Len() > 0 {
		root, _ := q.Get()
		q.Done(root)

		out = append(out, root.Kind+" "+root.Name)
	}

	return out
}

func newQueue(t *testing.T) queue {
	t.Helper()

	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Root]())
	t.Cleanup(q.ShutDown)

	return q
}

func TestARootThatIsHeardOfBeforeTheControllerRunsIsReconciledOnceItDoes(t *testing.T) {
	h, q := newHarness(t, claim, xr, lab), newQueue(t)

	for _, step := range []struct {
		observe string
		start   bool
		want    []string
	}{
		{"XStore corner-x", false, nil},
		{"", true, []string{"Store corner"}},
		{"Lab physics", false, []string{"Lab physics"}},
	} {
		if step.start {
			if err := h.Reconciler.index.source().Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}

		if step.observe != "" {
			h.change(t, step.observe, lists(instance("db", "spec.size")))

			if err := h.Reconciler.Observe(t.Context(), h.get(t, step.observe)); err != nil {
				t.Fatal(err)
			}
		}

		if diff := cmp.Diff(step.want, queued(q)); diff != "" {
			t.Errorf("queued, -want, +got:\n%s", diff)
		}
	}

	if got := h.asked(); len(got) > 0 {
		t.Errorf("%v wait for ever", got)
	}
}

// TestAnApprovalIsHeardOfThoughItsPendingChangeIsOutdated for of which root that is never changes.
func TestAnApprovalIsHeardOfThoughItsPendingChangeIsOutdated(t *testing.T) {
	h, q := heldBelowClaim(t), newQueue(t)
	h.Reconciler.Approvals = settling(func(*v1alpha1.PendingChange, *v1alpha1.PendingChangeStatus) {})

	// 1. The cache does not show what we wrote.
	old := h.pch(t)
	writing, _ := h.Reconciler.Client.(client.WithWatch)
	behind := object.NewClient(interceptor.NewClient(writing, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if pch, ok := obj.(*v1alpha1.PendingChange); ok && key == client.ObjectKeyFromObject(old) {
				old.DeepCopyInto(pch)

				return nil
			}

			return c.Get(ctx, key, obj, opts...)
		},
	}), 1, h.Reconciler.Now)
	h.Reconciler.Client = behind

	h.change(t, "XStore corner-x", lists())
	h.observe(t, "XStore corner-x")

	if err := behind.Get(t.Context(), client.ObjectKeyFromObject(old), &v1alpha1.PendingChange{}); !object.Outdated(err) {
		t.Fatal(err)
	}

	// 2. A ChangeApproval comes.
	informers := &fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: h.client.Scheme()}}
	all := h.Reconciler.sources(informers)

	approvals, _ := all[len(all)-1].(source.TypedSyncingSource[Root])
	if err := errors.Join(approvals.Start(t.Context(), q), approvals.WaitForSync(t.Context())); err != nil {
		t.Fatal(err)
	}

	said, err := informers.FakeInformerFor(t.Context(), &v1alpha1.ChangeApproval{})
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string][]string{old.Name: {"Store corner"}, "gone": nil} {
		said.Add(&v1alpha1.ChangeApproval{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: old.Namespace}, Spec: v1alpha1.ChangeApprovalSpec{PendingChange: name},
		})

		if diff := cmp.Diff(want, queued(q)); diff != "" {
			t.Errorf("queued for that of %q, -want, +got:\n%s", name, diff)
		}
	}
}
