// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

var (
	bucketKind = schema.GroupVersionKind{Group: "mr.example.org", Version: "v1", Kind: "Bucket"}
	storeKind  = schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Store"}
)

// governing makes the Reconciler of a kind, in a cluster with some objects, where Stores are named by a policy. Each
// write may be refused.
func governing(t *testing.T, gvk schema.GroupVersionKind, gated bool, refuse error, texts ...string) (*Reconciler, client.WithWatch) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{bucketKind.GroupVersion(), storeKind.GroupVersion()})
	mapper.Add(bucketKind, meta.RESTScopeNamespace)
	mapper.Add(storeKind, meta.RESTScopeNamespace)

	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if refuse != nil {
				return refuse
			}

			return c.Patch(ctx, obj, p, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if refuse != nil {
				return refuse
			}

			return c.Apply(ctx, obj, opts...)
		},
	})

	for _, text := range texts {
		u := fixture.Parse(t, text)
		b = b.WithObjects(u).WithStatusSubresource(u)
	}

	c, reg, recorder := b.Build(), prometheus.NewRegistry(), events.NewFakeRecorder(10)
	now := func() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }
	opts := gate.Options{LateInitialize: true}

	left, err := deletion.NewLeftovers(reg, c, c, "kausality-system", opts, now)
	if err != nil {
		t.Fatal(err)
	}

	ledger, err := NewLedger(reg, time.Now)
	if err != nil {
		t.Fatal(err)
	}

	w := watch.NewWatches(&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}}, now)
	w.Object = func(schema.GroupVersionKind) reconcile.Reconciler {
		return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	}

	t.Cleanup(w.Stop)

	known := &discovery.Kinds{Watches: w, Prompt: watch.NewPrompt()}
	known.Set(discovery.Findings{}, []kind.Served{{GVK: storeKind}}, []kind.Served{{GVK: bucketKind}})

	return &Reconciler{
		Gvk: gvk, Reader: c, Gated: gated, Composed: known, Leftovers: left,
		Parents: &Parents{Writer: object.Writer{Client: c}, Unused: NewUnused(now)},
		Owners:  &deletion.Owners{Client: c, Live: c, Watches: w, Leftovers: left},
		Gates: &Mover{
			Client: c, Events: recorder, Ungated: NewUngated(known.Prompt), Opts: opts, Now: now, Ledger: ledger,
			Policies: &PolicyGates{Reader: c, Compiled: policy.NewCache()}, Openers: Openers{Reader: c},
		},
	}, c
}

func TestWhatIsDoneAboutAnObjectIsAsItIs(t *testing.T) {
	const (
		going   = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [other, " + v1alpha1.Finalizer + "]"
		closed  = ", annotations: {kausality.io/gate: '{v: 1, state: Closed, generation: 1, since: \"2026-01-01T00:00:00Z\"}'}"
		openAll = "spec: {forProvider: {}, managementPolicies: ['*']}"
		observe = "spec: {forProvider: {}, managementPolicies: [Observe, LateInitialize]}"
	)

	bucket := func(metadata, spec string) string {
		return "{apiVersion: mr.example.org/v1, kind: Bucket, metadata: {name: x, namespace: a, uid: x, generation: 1" + metadata + "}, " + spec + "}"
	}
	store := func(metadata string) string {
		return "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: x, namespace: a, uid: x, generation: 1" + metadata + "}, spec: {}}"
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "buckets"}, "x", nil)

	cases := map[string]struct {
		reason, object string
		gvk            schema.GroupVersionKind
		ungated        bool
		refuse         error
		policies       []any
		finalizer      bool
		err            error
		late           bool
	}{
		"Gate":     {reason: "A gate is moved: it was never closed. In the same write it waits for us before it goes.", gvk: bucketKind, object: bucket(closed, openAll), policies: []any{"Observe"}, finalizer: true},
		"AtRest":   {reason: "One that is at rest waits for us before it goes.", gvk: bucketKind, object: bucket(closed, observe), policies: []any{"Observe", "LateInitialize"}, finalizer: true},
		"NoGates":  {reason: "Without gates nothing is moved.", gvk: bucketKind, object: bucket(closed, openAll), ungated: true, policies: []any{"*"}},
		"Going":    {reason: "What goes is released.", gvk: bucketKind, object: bucket(going, openAll), policies: []any{"*"}},
		"Parent":   {reason: "A parent that goes is released.", gvk: storeKind, object: store(going)},
		"Plain":    {reason: "A parent that stays is left alone.", gvk: storeKind, object: store("")},
		"Gone":     {reason: "What is gone needs nothing.", gvk: bucketKind},
		"Conflict": {reason: "A conflict is to be tried again silently.", gvk: bucketKind, object: bucket(closed, observe), refuse: conflict, policies: []any{"Observe", "LateInitialize"}, err: conflict, late: true},
		"Refused":  {reason: "What is refused is an error.", gvk: bucketKind, object: bucket(closed, observe), refuse: fixture.ErrRefused, policies: []any{"Observe", "LateInitialize"}, err: fixture.ErrRefused},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var there []string
			if tc.object != "" {
				there = append(there, tc.object)
			}

			r, c := governing(t, tc.gvk, !tc.ungated, tc.refuse, there...)

			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "x"}})
			if !errors.Is(err, tc.err) || object.Outdated(err) != tc.late {
				t.Fatalf("%s\n%v", tc.reason, err)
			}

			if tc.object == "" {
				return
			}

			live := object.New(tc.gvk)
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "x"}, live); err != nil {
				t.Fatal(err)
			}

			spec, _ := live.Object["spec"].(map[string]any)
			if policies, _ := spec["managementPolicies"].([]any); len(policies) != len(tc.policies) || len(policies) > 0 && policies[0] != tc.policies[0] {
				t.Errorf("%s\nmanagementPolicies %v, want %v", tc.reason, policies, tc.policies)
			}

			if object.HasFinalizer(live) != tc.finalizer {
				t.Errorf("%s\nfinalizers %v", tc.reason, live.GetFinalizers())
			}
		})
	}
}

func TestAGateDoesNotWaitForAParentButToOpenForDelete(t *testing.T) {
	const (
		store    = "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, uid: s}, spec: {crossplane: {resourceRefs: [{apiVersion: mr.example.org/v1, kind: Bucket, name: x}]}}}"
		closed   = `, kausality.io/gate: '{v: 1, state: Closed, generation: 7, since: "2026-01-01T00:00:00Z", consumed: 3}'`
		isOpen   = `, kausality.io/gate: '{v: 1, state: Open, actions: [Update], generation: 8, since: "2026-01-01T00:00:00Z", consumed: 3}'`
		toUpdate = ", kausality.io/allowances: '[{relation: External, mutations: [Update], generation: 8, initiator: hans, id: \"8.0\", source: {type: Policy}}]'"
		toDelete = ", kausality.io/allowances: '[{relation: External, mutations: [Delete], generation: 8, initiator: hans, id: \"8.0\", source: {type: Deletion}}]'"
	)

	bucket := func(annotations, policies, more string) string {
		return `{apiVersion: mr.example.org/v1, kind: Bucket, metadata: {name: x, namespace: a, uid: x, generation: 8` + more + `,
			annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}'` + annotations + `},
			ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]},
			spec: {forProvider: {size: large}, managementPolicies: ` + policies + `},
			status: {atProvider: {size: large}, conditions: [
				{type: Synced, status: "True", observedGeneration: 8, lastTransitionTime: "2026-01-01T00:00:00Z"}, {type: Ready, status: "True"}]}}`
	}
	going := ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [finalizer.managedresource.crossplane.io, " + v1alpha1.Finalizer + "]"
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "stores"}, "s", nil)

	parents := map[string]struct {
		refuse     error
		late, kept bool
	}{
		"Kept": {kept: true}, "Conflict": {refuse: conflict, late: true}, "Refused": {refuse: fixture.ErrRefused},
	}

	cases := map[string]struct {
		reason, object string
		// want are the management policies in the end, of one write; waiting those while the parent cannot be written.
		want, waiting []string
		// still is true where nothing is written then.
		still bool
		// unheld is true of what does not have its parent kept.
		unheld bool
	}{
		"New":    {reason: "What was not recorded is, and is closed.", object: bucket("", "['*']", ""), want: []string{"Observe"}},
		"Closed": {reason: "What was opened by hand is closed.", object: bucket(closed, "['*']", ""), want: []string{"Observe"}},
		"Update": {reason: "What may be updated is.", object: bucket(closed+toUpdate, "[Observe, LateInitialize]", ""), want: []string{"Observe", "LateInitialize", "Update"}},
		"Delete": {reason: "What may be deleted waits.", object: bucket(closed+toDelete, "[Observe, LateInitialize]", ""), want: []string{"Observe", "Delete"}, waiting: []string{"Observe", "LateInitialize"}, still: true},
		"Going":  {reason: "What is on its way out knows what that means.", object: bucket(closed+toDelete, "[Observe, LateInitialize]", going), want: []string{"Observe", "Delete"}, unheld: true},
		"Served": {reason: "An update that is made ends, though a deletion waits.", object: bucket(isOpen+toDelete, "[Observe, LateInitialize, Update]", ""), want: []string{"Observe", "Delete"}, waiting: []string{"Observe"}},
	}

	for name, tc := range cases {
		for parent, p := range parents {
			t.Run(name+parent, func(t *testing.T) {
				r, c := governing(t, bucketKind, true, nil, store, tc.object)
				r.Owners.Client = interceptor.NewClient(c, interceptor.Funcs{
					Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
						if p.refuse != nil {
							return p.refuse
						}

						return c.Apply(ctx, obj, opts...)
					},
				})

				// What is written to the Bucket.
				var writes []string

				note := func(verb string, obj any) {
					u, _ := obj.(client.Object)
					_, recorded := u.GetAnnotations()[v1alpha1.AnnotationGate]
					writes = append(writes, fmt.Sprintf("%s: record %t, finalizers %v", verb, recorded, u.GetFinalizers()))
				}
				noting := interceptor.NewClient(c, interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
						note("patch", obj)

						return c.Patch(ctx, obj, p, opts...)
					},
					Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
						note("apply", obj)

						return c.Apply(ctx, obj, opts...)
					},
				})
				r.Gates.Client = noting

				var err error
				if r.Leftovers, err = deletion.NewLeftovers(prometheus.NewRegistry(), noting, c, "kausality-system", r.Gates.Opts, r.Gates.Now); err != nil {
					t.Fatal(err)
				}

				refuse, late := p.refuse, p.late
				if tc.unheld {
					refuse, late = nil, false
				}

				_, err = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "x"}})
				if !errors.Is(err, refuse) || object.Outdated(err) != late {
					t.Errorf("%s\n%v", tc.reason, err)
				}

				want, wrote := tc.want, []string{fmt.Sprintf("apply: record true, finalizers [%s]", v1alpha1.Finalizer)}
				if tc.waiting != nil && !p.kept {
					if want = tc.waiting; tc.still {
						wrote = nil
					}
				}

				if diff := cmp.Diff(wrote, writes); diff != "" {
					t.Errorf("%s\nwrites, -want, +got:\n%s", tc.reason, diff)
				}

				live := object.New(bucketKind)
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "x"}, live); err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(want, resource.Strings(live.Object, "spec", "managementPolicies")); diff != "" {
					t.Errorf("%s\nmanagementPolicies, -want, +got:\n%s", tc.reason, diff)
				}

				owner := object.New(storeKind)
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "s"}, owner); err != nil || object.HasFinalizer(owner) != (p.kept && !tc.unheld) {
					t.Errorf("%s\nthe parent has finalizers %v, %v", tc.reason, owner.GetFinalizers(), err)
				}
			})
		}
	}
}

// TestAnXRThatTheFunctionDoesNotRunForSaysSo whatever else is to be done about the XR.
func TestAnXRThatTheFunctionDoesNotRunForSaysSo(t *testing.T) {
	const xr = `{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: x, namespace: a, uid: x},
		spec: {crossplane: {compositionRevisionRef: {name: stores-1}}},
		status: {conditions: [{type: Kausality, status: "True", reason: Allowed, message: "generation 1: settled", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`

	for runs, want := range map[bool]string{true: v1alpha1.ReasonAllowed, false: v1alpha1.ReasonNotRun} {
		r, c := governing(t, storeKind, false, nil, xr)
		r.Composed.Set(discovery.Findings{Revisions: map[string]bool{"stores-1": runs}}, nil, nil)

		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "x"}}); err != nil {
			t.Fatal(err)
		}

		live := object.New(storeKind)
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "x"}, live); err != nil {
			t.Fatal(err)
		}

		if said, _ := resource.ConditionOf(live, v1alpha1.ConditionKausality); said.Reason != want {
			t.Errorf("the revision runs the function: %v; the condition's reason is %s, want %s", runs, said.Reason, want)
		}
	}
}

// told is what is told of objects.
type told struct {
	said []string
	err  error
}

func (h *told) Observe(_ context.Context, u *unstructured.Unstructured) error {
	h.said = append(h.said, "there "+u.GetName())

	return h.err
}

func (h *told) Gone(gk schema.GroupKind, key types.NamespacedName) {
	h.said = append(h.said, "gone "+gk.Kind+" "+key.String())
}

func TestWhatIsThereAndWhatIsNotIsTold(t *testing.T) {
	const store = "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: x, namespace: a, uid: x, generation: 1}, spec: {}}"

	cases := map[string]struct {
		reason, object string
		err            error
		want           []string
	}{
		"There": {reason: "One that is there.", object: store, want: []string{"there x"}},
		"Gone":  {reason: "One that is not.", want: []string{"gone Store a/x"}},
		"Fails": {reason: "Where that fails it is tried again.", object: store, err: fixture.ErrRefused, want: []string{"there x"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, c := governing(t, storeKind, true, nil)

			if tc.object != "" {
				if err := c.Create(t.Context(), fixture.Parse(t, tc.object)); err != nil {
					t.Fatal(err)
				}
			}

			told := &told{err: tc.err}
			r.Pending = told

			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "x"}}); !errors.Is(err, tc.err) {
				t.Errorf("%s\n%v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, told.said); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAGateThatIsOpenIsLookedAtThoughItsParentIsNotKept has an open gate with a time at which it is to be looked at again.
func TestAGateThatIsOpenIsLookedAtThoughItsParentIsNotKept(t *testing.T) {
	const (
		store  = "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, uid: s}, spec: {}}"
		bucket = `{apiVersion: mr.example.org/v1, kind: Bucket, metadata: {name: x, namespace: a, uid: x, generation: 8, finalizers: [` + v1alpha1.Finalizer + `],
			annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}',
				kausality.io/allowances: '[{relation: External, mutations: [Update], generation: 8, initiator: hans, id: "8.0", source: {type: Policy}}]',
				kausality.io/gate: '{v: 1, state: Open, actions: [Update], generation: 8, since: "2026-01-01T11:30:00Z", consumed: 3, allowances: [{relation: External, mutations: [Update], generation: 8, initiator: hans, id: "8.0", source: {type: Policy}}]}'},
			ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]},
			spec: {forProvider: {size: large}, managementPolicies: [Observe, LateInitialize, Update]}}`
	)

	for name, tc := range map[string]struct {
		refuse error
		late   bool
		after  time.Duration
	}{
		"Kept":     {after: 30 * time.Minute},
		"Conflict": {refuse: apierrors.NewConflict(schema.GroupResource{Resource: "stores"}, "s", nil), late: true},
		"Refused":  {refuse: fixture.ErrRefused, after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := governing(t, bucketKind, true, nil, store, bucket)
			r.Gates.Opts.MaxOpen = time.Hour
			r.Owners.Client = interceptor.NewClient(c, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					if tc.refuse != nil {
						return tc.refuse
					}

					return c.Apply(ctx, obj, opts...)
				},
			})

			res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "x"}})
			if object.Outdated(err) != tc.late || err != nil && !tc.late {
				t.Errorf("Reconcile: %v, to be tried again soon: want %t", err, tc.late)
			}

			if !tc.late && res.RequeueAfter != tc.after {
				t.Errorf("looked at again after %s, want %s", res.RequeueAfter, tc.after)
			}
		})
	}
}
