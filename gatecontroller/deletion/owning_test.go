// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/internal/current"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func parentOf(t *testing.T, u *unstructured.Unstructured) resource.Reference {
	t.Helper()

	ref, ok := resource.ParentOf(u)
	if !ok {
		t.Fatal("it has no parent")
	}

	return ref
}

// owning makes Owners of a cluster with some objects and a policy: the deletion of a
// Store allows that of its Buckets, in the system outside, too.
func owning(t *testing.T, objects ...client.Object) (*Owners, client.WithWatch) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "mr.example.org", Version: "v1"}, {Group: "shop.example.org", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "mr.example.org", Version: "v1", Kind: "Bucket"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Store"}, meta.RESTScopeNamespace)

	p := fixture.Documents[v1alpha1.AllowancePolicy](t,
		`{metadata: {name: p}, spec: {match: {kind: Store, fields: [delete]}, allow: [{kind: Bucket, mutations: [delete]}]}}`,
		`{metadata: {name: q}, spec: {match: {kind: Bucket, fields: [delete]}, allow: [{relation: External, mutations: [Delete]}]}}`)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}

	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(append(objects, &p[0], &p[1], ns)...).Build()
	now := func() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

	left, err := NewLeftovers(prometheus.NewRegistry(), c, c, "kausality-system", gate.Options{LateInitialize: true}, now)
	if err != nil {
		t.Fatal(err)
	}

	w := watch.NewWatches(&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}}, now)
	w.Object = func(schema.GroupVersionKind) reconcile.Reconciler {
		return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	}

	t.Cleanup(w.Stop)

	return &Owners{
		Client: c, Live: c, Watches: w, Leftovers: left,
		Ungoverned: func(schema.GroupKind) bool { return false },
		Judge:      &judging.Judge{Inputs: current.Of(c), Live: c, Mapper: mapper, Settings: request.Settings{}, Now: now},
	}, c
}

// behind is a client whose cache shows an object as it was.
type behind struct {
	client.Client

	was *unstructured.Unstructured
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || key != client.ObjectKeyFromObject(b.was) || u.GroupVersionKind() != b.was.GroupVersionKind() {
		return b.Client.Get(ctx, key, obj, opts...)
	}

	b.was.DeepCopyInto(u)

	return nil
}

func TestTheOwnerOfAGatedResourceWaitsForUs(t *testing.T) {
	const owned = ", namespace: a, annotations: {kausality.io/gate: '{v: 1, state: Closed}'}, " +
		"ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]"

	store := func(metadata string) string {
		return "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, " + metadata + "}, " +
			"spec: {crossplane: {resourceRefs: [{apiVersion: mr.example.org/v1, kind: Bucket, name: b}]}}}"
	}

	cases := map[string]struct {
		reason, parent string
		waits, watched bool
	}{
		"There":   {"It is to wait, and its kind is watched before.", store("uid: s"), true, true},
		"Waits":   {"It waits already; its kind is watched.", store("uid: s, finalizers: [" + v1alpha1.Finalizer + "]"), true, true},
		"Another": {"It is another one of that name.", store("uid: t"), false, false},
		"Going":   {"It is too late to have it wait.", store("uid: s, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [other]"), false, false},
		"Gone":    {"It is gone.", "", false, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			child := fixture.Parse(t, bucket(owned, "managementPolicies: [Observe]"))

			objects := []client.Object{child}
			if tc.parent != "" {
				objects = append(objects, fixture.Parse(t, tc.parent))
			}

			o, c := owning(t, objects...)
			if err := o.EnsureFinalizer(t.Context(), child); err != nil {
				t.Fatal(err)
			}

			live := object.New(schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Store"})
			if err := client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "s"}, live)); err != nil {
				t.Fatal(err)
			}

			if object.HasFinalizer(live) != tc.waits || (len(o.Watches.Kinds()) == 1) != tc.watched {
				t.Errorf("%s\nfinalizers %v, watched %v", tc.reason, live.GetFinalizers(), o.Watches.Kinds())
			}
		})
	}
}

// TestAnOwnerWhoseKindIsReleasedMeanwhileIsWatchedAgain because its finalizer came too late to be taken off with the others.
func TestAnOwnerWhoseKindIsReleasedMeanwhileIsWatchedAgain(t *testing.T) {
	const metadata = ", namespace: a, ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]"

	store := fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, uid: s}}")
	child := fixture.Parse(t, bucket(metadata, "managementPolicies: [Observe]"))
	o, c := owning(t, store, child)
	served := []kind.Served{{GVK: child.GroupVersionKind(), Managed: true}}
	o.Watches.Release, o.Watches.Dropped = o.ReleaseAll, func(schema.GroupKind) {}

	watched := func() bool { return slices.Contains(o.Watches.Kinds(), store.GroupVersionKind()) }
	o.Client = interceptor.NewClient(c, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if !watched() {
				t.Error("the kind is not watched before its object waits for us")
			}

			if err := o.Watches.Prune(ctx, served, served); err != nil || watched() {
				t.Errorf("released: %t, %v", !watched(), err)
			}

			return c.Apply(ctx, obj, opts...)
		},
	})

	if err := o.EnsureFinalizer(t.Context(), child); err != nil {
		t.Fatal(err)
	}

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(store), store); err != nil || !object.HasFinalizer(store) || !watched() {
		t.Errorf("finalizers %v, %v; its kind is watched: %t", store.GetFinalizers(), err, watched())
	}
}
