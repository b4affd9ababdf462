// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package governed

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/kausality-io/kausality-crossplane/gatecontroller/composed"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/shard"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

var (
	bucketKind = schema.GroupVersionKind{Group: "mr.example.org", Version: "v1", Kind: "Bucket"}
	storeKind  = schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Store"}
)

// governing makes the Reconciler of a kind, in a cluster with one object at most, where
// Stores are named by a policy.
func governing(t *testing.T, gvk schema.GroupVersionKind, gated bool, patch error, text string) (*Reconciler, client.Client) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{bucketKind.GroupVersion(), storeKind.GroupVersion()})
	mapper.Add(bucketKind, meta.RESTScopeNamespace)
	mapper.Add(storeKind, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "wide.example.org", Version: "v1", Kind: "Wide"}, meta.RESTScopeRoot)

	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if patch != nil {
				return patch
			}

			return c.Patch(ctx, obj, p, opts...)
		},
	})
	if text != "" {
		u := fixture.Parse(t, text)
		b = b.WithObjects(u).WithStatusSubresource(u)
	}

	c, reg, recorder := b.Build(), prometheus.NewRegistry(), events.NewFakeRecorder(10)
	now := func() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }
	opts := gate.Options{LateInitialize: true}

	left, err := deletion.NewLeftovers(reg, c, c, recorder, "kausality-system", opts, now)
	if err != nil {
		t.Fatal(err)
	}

	ledger, err := gates.NewLedger(reg)
	if err != nil {
		t.Fatal(err)
	}

	main, err := shard.New("")
	if err != nil {
		t.Fatal(err)
	}

	w := watch.NewWatches(&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}}, now)
	known := &composed.Kinds{Watches: w, Prompt: watch.NewPrompt()}
	known.Set(composed.Findings{}, []kind.Served{{GVK: storeKind}}, []kind.Served{{GVK: bucketKind}})

	reader := shard.Reader{Cache: c, Live: c}

	return &Reconciler{
		Gvk: gvk, Reader: reader, Shard: main, Gated: gated, Composed: known, Leftovers: left,
		Parents: &Parents{Client: c, Unused: NewUnused(now)},
		Owners:  &deletion.Owners{Writer: object.Writer{Client: c}, Live: c, Objects: reader, Events: recorder, Watches: w, Leftovers: left},
		Gates: &gates.Reconciler{
			Client: c, Events: recorder, Ungated: gates.NewUngated(known.Prompt), Opts: opts, Now: now, Ledger: ledger,
			Policies: &gates.PolicyGates{Reader: c, Compiled: policy.NewCache()}, Openers: gates.Openers{Reader: c},
		},
	}, c
}

func TestWhatIsDoneAboutAnObjectIsAsItIs(t *testing.T) {
	const (
		going   = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [other, " + v1alpha1.Finalizer + "]"
		closed  = ", annotations: {kausality.io/gate: '{state: Closed, generation: 1, since: \"2026-01-01T00:00:00Z\"}'}"
		openAll = "spec: {forProvider: {}, managementPolicies: ['*']}"
		observe = "spec: {forProvider: {}, managementPolicies: [Observe, LateInitialize]}"
	)

	bucket := func(metadata, spec string) string {
		return "{apiVersion: mr.example.org/v1, kind: Bucket, metadata: {name: x, namespace: a, uid: x, generation: 1" + metadata + "}, " + spec + "}"
	}
	store := func(metadata string) string {
		return "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: x, namespace: a, uid: x, generation: 1" + metadata + "}, spec: {}}"
	}
	gr := schema.GroupResource{Resource: "buckets"}

	cases := map[string]struct {
		reason, object string
		gvk            schema.GroupVersionKind
		ungated        bool
		patch          error
		policies       []any
		finalizer      bool
		again          time.Duration
		err            error
	}{
		"Gate":     {reason: "A gate is moved: it was never closed.", gvk: bucketKind, object: bucket(closed, openAll), policies: []any{"Observe", "LateInitialize"}},
		"AtRest":   {reason: "One that is at rest waits for us before it goes.", gvk: bucketKind, object: bucket(closed, observe), policies: []any{"Observe", "LateInitialize"}, finalizer: true},
		"NoGates":  {reason: "Without gates nothing is moved.", gvk: bucketKind, object: bucket(closed, openAll), ungated: true, policies: []any{"*"}},
		"Going":    {reason: "What goes is released.", gvk: bucketKind, object: bucket(going, openAll), policies: []any{"*"}},
		"Parent":   {reason: "A parent that goes is released.", gvk: storeKind, object: store(going)},
		"Plain":    {reason: "A parent that stays is left alone.", gvk: storeKind, object: store("")},
		"Gone":     {reason: "What is gone needs nothing.", gvk: bucketKind},
		"Conflict": {reason: "A conflict is tried again silently.", gvk: bucketKind, object: bucket(closed, observe), patch: apierrors.NewConflict(gr, "x", nil), policies: []any{"Observe", "LateInitialize"}, again: object.ConflictDelay},
		"Refused":  {reason: "What is refused is an error.", gvk: bucketKind, object: bucket(closed, observe), patch: fixture.ErrRefused, policies: []any{"Observe", "LateInitialize"}, err: fixture.ErrRefused},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, c := governing(t, tc.gvk, !tc.ungated, tc.patch, tc.object)

			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "x"}})
			if !errors.Is(err, tc.err) || tc.again > 0 && got.RequeueAfter != tc.again {
				t.Fatalf("%s\nagain after %s; %v", tc.reason, got.RequeueAfter, err)
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

// TestAnXRThatTheFunctionDoesNotRunForSaysSo whatever else is to be done about the XR.
func TestAnXRThatTheFunctionDoesNotRunForSaysSo(t *testing.T) {
	const xr = `{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: x, namespace: a, uid: x},
		spec: {crossplane: {compositionRevisionRef: {name: stores-1}}},
		status: {conditions: [{type: Kausality, status: "True", reason: Allowed, message: "generation 1: settled", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`

	for runs, want := range map[bool]string{true: v1alpha1.ReasonAllowed, false: v1alpha1.ReasonNotRun} {
		r, c := governing(t, storeKind, false, nil, xr)
		r.Composed.Set(composed.Findings{Revisions: map[string]bool{"stores-1": runs}}, nil, nil)

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

// heard is what is told of objects.
type heard struct {
	said []string
	err  error
}

func (h *heard) Observe(_ context.Context, u *unstructured.Unstructured) error {
	h.said = append(h.said, "there "+u.GetName())

	return h.err
}

func (h *heard) Gone(gk schema.GroupKind, key types.NamespacedName) {
	h.said = append(h.said, "gone "+gk.Kind+" "+key.String())
}

func TestWhatIsThereAndWhatIsNotIsTold(t *testing.T) {
	const (
		spaced = "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: x, namespace: a, uid: x, generation: 1}, spec: {}}"
		wide   = "{apiVersion: wide.example.org/v1, kind: Wide, metadata: {name: x, uid: x, generation: 1}%s}"
	)

	wideKind := schema.GroupVersionKind{Group: "wide.example.org", Version: "v1", Kind: "Wide"}

	cases := map[string]struct {
		reason, object, namespace, shard string
		gvk                              schema.GroupVersionKind
		err                              error
		want                             []string
	}{
		"There":     {reason: "One that is there.", gvk: storeKind, object: spaced, namespace: "a", want: []string{"there x"}},
		"Gone":      {reason: "One that is not.", gvk: storeKind, namespace: "a", want: []string{"gone Store a/x"}},
		"Fails":     {reason: "Where that fails it is tried again.", gvk: storeKind, object: spaced, namespace: "a", err: fixture.ErrRefused, want: []string{"there x"}},
		"Elsewhere": {reason: "One of another shard is as good as gone.", gvk: storeKind, object: spaced, namespace: "a", shard: "b", want: []string{"gone Store a/x"}},
		"Left":      {reason: "But for what is left of one in no namespace.", gvk: wideKind, object: fmt.Sprintf(wide, ", stripped: true"), shard: "b", want: []string{"there x"}},
		"Whole":     {reason: "Or it is whole, and of the shard without a name.", gvk: wideKind, object: fmt.Sprintf(wide, ""), shard: "b", want: []string{"gone Wide /x"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, c := governing(t, storeKind, true, nil, "")

			if tc.object != "" {
				if err := c.Create(t.Context(), fixture.Parse(t, tc.object)); err != nil {
					t.Fatal(err)
				}
			}

			var err error
			if r.Shard, err = shard.New(tc.shard); err != nil {
				t.Fatal(err)
			}

			told := &heard{err: tc.err}
			r.Gvk, r.Pending = tc.gvk, told

			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: tc.namespace, Name: "x"}}); !errors.Is(err, tc.err) {
				t.Errorf("%s\n%v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, told.said); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
