// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"sync"
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
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// TestACreationCountsThoughTheObjectIsGoneBeforeItIsWatched has watches see
// nothing, which cannot be had for sure of an API server.
func TestACreationCountsThoughTheObjectIsGoneBeforeItIsWatched(t *testing.T) {
	const user = "system:serviceaccount:kube-system:builder"

	// It is over when the uses are written.
	now := time.Now().Add(-2 * time.Hour)
	allowed := v1alpha1.UpgradeAllowance{
		ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "1"},
		Spec: v1alpha1.UpgradeAllowanceSpec{
			ServiceAccount: user, ValidFrom: metav1.NewTime(now.Add(-time.Hour)), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
			Allow: []v1alpha1.Permission{{Kind: "Task", Mutations: []string{v1alpha1.MutationCreate}}},
		},
		Status: v1alpha1.UpgradeAllowanceStatus{Active: true},
	}

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&allowed).WithStatusSubresource(&allowed).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}).Build()

	// 1. Somebody makes a task under the window, and at once deletes it.
	task := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Task", "metadata": map[string]any{"name": "made"}, "spec": map[string]any{"size": "small"},
	}}
	create := &decision.Request{
		Operation: decision.OperationCreate, New: task, ParentGone: true, User: policy.User{Name: user}, Policies: policy.NewSet(),
		Upgrades: []v1alpha1.UpgradeAllowance{allowed}, Action: v1alpha1.ActionWarn, Now: now,
	}
	made := decision.Decide(*create)

	stored := made.Object.DeepCopy()
	stored.SetUID("2")
	stored.SetCreationTimestamp(metav1.NewTime(now))

	remove := &decision.Request{Operation: decision.OperationDelete, Old: stored, Policies: policy.NewSet(), Now: now}
	removed := decision.Decide(*remove)

	uses := webhook.NewUses(c, client.ObjectKey{Namespace: "home", Name: "uses"}, logr.Discard())
	uses.Note(t.Context(), create, &made)
	uses.Note(t.Context(), remove, &removed)
	uses.Note(t.Context(), remove, &removed) // The API server may ask again.

	// 2. It is counted, once.
	uses.Finish(t.Context())

	got := &v1alpha1.UpgradeAllowance{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&allowed), got); err != nil {
		t.Fatal(err)
	}

	if got.Status.Uses != 1 {
		t.Errorf("%d uses, want 1", got.Status.Uses)
	}
}

// TestAnUpdateCountsThoughAnotherOneOfTheSameVersionIsRefused has the API server ask
// about an update that it then refuses, as it was about an older version, and about
// the one that it stores.
func TestAnUpdateCountsThoughAnotherOneOfTheSameVersionIsRefused(t *testing.T) {
	const user = "system:serviceaccount:kube-system:builder"

	now := time.Now().Add(-2 * time.Hour)
	allowed := v1alpha1.UpgradeAllowance{
		ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "1"},
		Spec: v1alpha1.UpgradeAllowanceSpec{
			ServiceAccount: user, ValidFrom: metav1.NewTime(now.Add(-time.Hour)), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
			Allow: []v1alpha1.Permission{{Kind: "Task", Mutations: []string{"spec"}}},
		},
		Status: v1alpha1.UpgradeAllowanceStatus{Active: true},
	}

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	task := func(version, size string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Task", "metadata": map[string]any{"name": "made", "uid": "2", "resourceVersion": version},
			"spec": map[string]any{"size": size, "shape": "round"},
		}}
	}

	var watches sync.WaitGroup

	watches.Add(2)

	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&allowed).WithStatusSubresource(&allowed).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			w.Modify(task("6", "large"))
			watches.Done()
			watches.Wait() // Both are asked about before anything is stored.

			return w, nil
		},
	}).Build()

	uses := webhook.NewUses(c, client.ObjectKey{Namespace: "home", Name: "uses"}, logr.Discard())

	for _, size := range []string{"stale", "large"} {
		req := &decision.Request{
			Operation: decision.OperationUpdate, Old: task("5", "small"), New: task("5", size), ParentGone: true,
			User: policy.User{Name: user}, Policies: policy.NewSet(), Upgrades: []v1alpha1.UpgradeAllowance{allowed},
			Action: v1alpha1.ActionWarn, Now: now,
		}
		d := decision.Decide(*req)

		uses.Note(t.Context(), req, &d)
		uses.Note(t.Context(), req, &d) // The API server may ask again.
	}

	uses.Finish(t.Context())

	got := &v1alpha1.UpgradeAllowance{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&allowed), got); err != nil {
		t.Fatal(err)
	}

	if got.Status.Uses != 1 {
		t.Errorf("%d uses, want 1", got.Status.Uses)
	}
}
