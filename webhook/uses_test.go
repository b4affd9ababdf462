// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// TestACreationCountsThoughTheObjectIsGoneBeforeItIsWatched has watches see
// nothing, which cannot be had for sure of an API server.
func TestACreationCountsThoughTheObjectIsGoneBeforeItIsWatched(t *testing.T) {
	b := newBuilding(t, v1alpha1.MutationCreate, func() watch.Interface { return watch.NewFake() })

	// 1. Somebody makes a task under the window, and at once deletes it.
	task := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Task", "metadata": map[string]any{"name": "made"}, "spec": map[string]any{"size": "small"},
	}}
	create := &decision.Request{
		Operation: decision.OperationCreate, New: task, ParentGone: true, User: policy.User{Name: builder}, Basis: decision.Basis{Policies: policy.NewSet(), Upgrades: compiled(t, b.window), Now: b.now},
		Action: v1alpha1.ActionWarn,
	}
	made := decision.Decide(*create)

	stored := made.Object.DeepCopy()
	stored.SetUID("2")
	stored.SetCreationTimestamp(metav1.NewTime(b.now))

	remove := &decision.Request{Operation: decision.OperationDelete, Old: stored, Basis: decision.Basis{Policies: policy.NewSet(), Now: b.now}}
	removed := decision.Decide(*remove)

	b.uses.Note(t.Context(), create, &made)
	b.uses.Note(t.Context(), remove, &removed)
	b.uses.Note(t.Context(), remove, &removed) // The API server may ask again.

	// 2. It is counted, once.
	if got := b.finish(); got != 1 {
		t.Errorf("%d uses, want 1", got)
	}
}

// TestAVersionIsUpdatedOnce has the API server ask about two updates of a version, of
// which it stores one.
func TestAVersionIsUpdatedOnce(t *testing.T) {
	task := func(version, size, shape string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Task", "metadata": map[string]any{"name": "made", "uid": "2", "resourceVersion": version},
			"spec": map[string]any{"size": size, "shape": shape},
		}}
	}

	for name, tc := range map[string]struct {
		reason string
		first  *unstructured.Unstructured
	}{
		"Refused": {"One that is refused, as it was about an older version, does not hide the one that follows it.", task("5", "stale", "round")},
		"Again":   {"Another webhook changed it, and the API server asks once more: that is one update.", task("5", "large", "round")},
	} {
		t.Run(name, func(t *testing.T) {
			noted := make(chan struct{})

			b := newBuilding(t, "spec", func() watch.Interface {
				w := watch.NewFakeWithChanSize(1, false)
				w.Modify(task("6", "large", "square"))

				<-noted // Both are asked about, and asked about again, before anything is stored.

				return w
			})

			for _, obj := range []*unstructured.Unstructured{tc.first, task("5", "large", "square")} {
				req := &decision.Request{
					Operation: decision.OperationUpdate, Old: task("5", "small", "round"), New: obj, ParentGone: true,
					User: policy.User{Name: builder}, Basis: decision.Basis{Policies: policy.NewSet(), Upgrades: compiled(t, b.window), Now: b.now},
					Action: v1alpha1.ActionWarn,
				}
				d := decision.Decide(*req)

				b.uses.Note(t.Context(), req, &d)
				b.uses.Note(t.Context(), req, &d) // The API server may ask again.
			}

			close(noted)

			if got := b.finish(); got != 1 {
				t.Errorf("%s\n%d uses, want 1", tc.reason, got)
			}
		})
	}
}

// builder is who may make tasks, and edit them.
const builder = "system:serviceaccount:kube-system:builder"

// building is a window for the builder, and what counts its uses.
type building struct {
	t      *testing.T
	client client.WithWatch
	window v1alpha1.UpgradeAllowance
	uses   *webhook.Uses
	// now is within the window, which is over when the uses are written.
	now time.Time
}

// newBuilding makes a window for a mutation of tasks, which are watched so.
func newBuilding(t *testing.T, mutation string, watches func() watch.Interface) *building {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	now := time.Now().Add(-2 * time.Hour)
	b := &building{t: t, now: now, window: v1alpha1.UpgradeAllowance{
		ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "1"},
		Spec: v1alpha1.UpgradeAllowanceSpec{
			ServiceAccount: builder, ValidFrom: metav1.NewTime(now.Add(-time.Hour)), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
			Allow: []v1alpha1.Permission{{Kind: "Task", Mutations: []string{mutation}}},
		},
		Status: v1alpha1.UpgradeAllowanceStatus{Active: true},
	}}

	b.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(&b.window).WithStatusSubresource(&b.window).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return watches(), nil
		},
	}).Build()
	b.uses = webhook.NewUses(b.client, client.ObjectKey{Namespace: "home", Name: "uses"}, logr.Discard())

	return b
}

// finish has the uses written, and returns how many there are.
func (b *building) finish() int64 {
	b.t.Helper()
	b.uses.Finish(b.t.Context())

	got := &v1alpha1.UpgradeAllowance{}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(&b.window), got); err != nil {
		b.t.Fatal(err)
	}

	return got.Status.Uses
}

// compiled compiles UpgradeAllowances.
func compiled(tb testing.TB, list ...v1alpha1.UpgradeAllowance) []*allowance.Window {
	tb.Helper()

	out, err := fixture.Windows(list...)
	if err != nil {
		tb.Fatal(err)
	}

	return out
}
