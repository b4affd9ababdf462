// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// bucket is a managed resource with more metadata and spec, as YAML.
func bucket(metadata, spec string) string {
	return "{apiVersion: mr.example.org/v1, kind: Bucket, metadata: {name: b, uid: b" + metadata + "}, spec: {forProvider: {}, " + spec + "}}"
}

// leaving makes Leftovers of a cluster with some objects.
func leaving(t *testing.T, create error, objects ...client.Object) (*Leftovers, client.Client, *prometheus.Registry) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*corev1.Secret); ok && create != nil {
				return create
			}

			return c.Create(ctx, obj, opts...)
		},
	}).Build()
	reg := prometheus.NewRegistry()
	now := func() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

	e, err := NewLeftovers(reg, c, c, "kausality-system", gate.Options{LateInitialize: true}, now)
	if err != nil {
		t.Fatal(err)
	}

	return e, c, reg
}

// told are the events that are recorded.
func told(t *testing.T, c client.Client) []eventsv1.Event {
	t.Helper()

	list := &eventsv1.EventList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	return list.Items
}

func TestWhatAManagedResourceLeavesBehindIsOnRecordBeforeItGoes(t *testing.T) {
	const (
		going = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [finalizer.managedresource.crossplane.io, " + v1alpha1.Finalizer + "]"
		grant = ", annotations: {kausality.io/allowances: '[{relation: External, mutations: [Delete], generation: 3, initiator: hans, id: \"3.0\", source: {type: Deletion}}]'}"
	)

	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", nil)

	cases := map[string]struct {
		reason string
		object string
		gated  bool
		create error
		// waits, recorded and released are what becomes of it.
		waits, recorded, released bool
		told                      string
		err                       error
		// cached is the object as the cache shows it; as it is where empty.
		cached string
	}{
		"Asked":      {reason: "The provider deletes what it stands for: nothing is left.", object: bucket(going, "managementPolicies: ['*']"), gated: true, released: true},
		"Awaited":    {reason: "Its gate is going to open.", object: bucket(going+grant, "managementPolicies: [Observe]"), gated: true, waits: true},
		"NoGates":    {reason: "Where nobody opens gates it is left.", object: bucket(going+grant, "managementPolicies: [Observe]"), recorded: true, released: true, told: "Secret kausality-system/"},
		"LeftBehind": {reason: "It is not allowed.", object: bucket(going, "managementPolicies: [Observe]"), gated: true, recorded: true, released: true, told: "Secret kausality-system/"},
		"NoSecret":   {reason: "What cannot be stored for good keeps no CRD from going.", object: bucket(going, "managementPolicies: [Observe]"), gated: true, create: forbidden, released: true, told: "the log of kausality-manager alone"},
		"Refused":    {reason: "Anything else is tried again before it goes.", object: bucket(going, "managementPolicies: [Observe]"), gated: true, create: fixture.ErrRefused, err: fixture.ErrRefused},
		"Stays":      {reason: "What is not being deleted stays.", object: bucket(", finalizers: ["+v1alpha1.Finalizer+"]", "managementPolicies: [Observe]"), gated: true},
		"Gone":       {reason: "What is gone leaves nothing."},
		"BehindItsGrant": {
			reason: "The cache does not show yet that its deletion is allowed.", object: bucket(going+grant, "managementPolicies: [Observe]"),
			cached: bucket(going, "managementPolicies: [Observe]"), gated: true, waits: true,
		},
		"BehindItsGate": {
			reason: "Nor that its gate has closed.", object: bucket(going, "managementPolicies: [Observe]"),
			cached: bucket(going, "managementPolicies: ['*']"), gated: true, recorded: true, released: true, told: "Secret kausality-system/",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := fixture.Parse(t, bucket("", "managementPolicies: [Observe]"))

			var objects []client.Object
			if tc.object != "" {
				u = fixture.Parse(t, tc.object)
				objects = append(objects, u)
			}

			e, c, reg := leaving(t, tc.create, objects...)

			cached := u
			if tc.cached != "" {
				cached = fixture.Parse(t, tc.cached)
				e.writer.Client = behind{c, cached}
			}

			waits, err := e.Release(t.Context(), cached, tc.gated)
			if waits != tc.waits || !errors.Is(err, tc.err) {
				t.Errorf("%s\nwaits %v, %v", tc.reason, waits, err)
			}

			secrets := &corev1.SecretList{}
			if err := c.List(t.Context(), secrets, client.InNamespace("kausality-system")); err != nil {
				t.Fatal(err)
			}

			if (len(secrets.Items) == 1) != tc.recorded {
				t.Errorf("%s\n%d records", tc.reason, len(secrets.Items))
			}

			live := object.New(u.GroupVersionKind())
			err = c.Get(t.Context(), client.ObjectKeyFromObject(u), live)

			if tc.object != "" && (err != nil || object.HasFinalizer(live) == tc.released) {
				t.Errorf("%s\nfinalizers %v, %v", tc.reason, live.GetFinalizers(), err)
			}

			if counted := len(fixture.Counted(t, reg)) > 0; counted != (tc.told != "") || (len(told(t, c)) == 2) != counted {
				t.Errorf("%s\ncounted %v, told %v", tc.reason, counted, told(t, c))
			}

			for _, e := range told(t, c) {
				if !strings.Contains(e.Note, tc.told) || e.Reason != string(v1alpha1.EventReasonExternalResourceOrphaned) {
					t.Errorf("%s\ntold %q", tc.reason, e.Note)
				}
			}
		})
	}
}

func TestAGatedResourceWaitsForUsBeforeItGoes(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           []string
	}{
		"Closed":  {"It is at rest.", bucket(", annotations: {kausality.io/gate: '{v: 1, state: Closed}'}", "managementPolicies: [Observe, LateInitialize]"), []string{v1alpha1.Finalizer}},
		"Waits":   {"It waits already.", bucket(", finalizers: ["+v1alpha1.Finalizer+"]", "managementPolicies: [Observe]"), []string{v1alpha1.Finalizer}},
		"Going":   {"It is too late.", bucket(", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [other]", "managementPolicies: [Observe]"), []string{"other"}},
		"Planned": {"What is about to be written is another version.", bucket(", annotations: {kausality.io/gate: '{v: 1, state: Closed}'}", "managementPolicies: ['*']"), nil},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := fixture.Parse(t, tc.object)
			e, c, _ := leaving(t, nil, u)

			live := object.New(u.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
				t.Fatal(err)
			}

			if err := e.EnsureFinalizer(t.Context(), live); err != nil {
				t.Fatal(err)
			}

			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, live.GetFinalizers()); diff != "" {
				t.Errorf("%s\nfinalizers, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestThatAnOwnerIsGoneIsReportedForWhatStays(t *testing.T) {
	const owned = ", ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]"

	store := "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, uid: %s}}"
	cases := map[string]struct {
		reason, object, owner string
		told                  bool
	}{
		"Gone":    {"It has lost its owner.", bucket(owned, "managementPolicies: [Observe]"), "", true},
		"Another": {"The owner is another one of its name.", bucket(owned, "managementPolicies: [Observe]"), strings.Replace(store, "%s", "t", 1), true},
		"Behind":  {"The cache was behind.", bucket(owned, "managementPolicies: [Observe]"), strings.Replace(store, "%s", "s", 1), false},
		"Going":   {"It goes as well.", bucket(owned, "managementPolicies: ['*']"), "", false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.owner != "" {
				objects = append(objects, fixture.Parse(t, tc.owner))
			}

			e, c, _ := leaving(t, nil, objects...)
			u := fixture.Parse(t, tc.object)
			ref := parentOf(t, u)

			if err := e.reportOwnerGone(t.Context(), u, ref); err != nil {
				t.Fatal(err)
			}

			if list := told(t, c); (len(list) == 1) != tc.told {
				t.Errorf("%s\ntold %v", tc.reason, list)
			}
		})
	}
}

func TestTheOwnerOfAGatedResourceGoesOnceThatKnowsWhatItMeans(t *testing.T) {
	const (
		going = "deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [other, " + v1alpha1.Finalizer + "]"
		owned = ", namespace: a, annotations: {kausality.io/gate: '{v: 1, state: Closed}'}, " +
			"ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]"
		refs    = "spec: {crossplane: {resourceRefs: [{apiVersion: mr.example.org/v1, kind: Bucket, name: b}]}}"
		granted = ", annotations: {kausality.io/allowances: '[{apiGroup: mr.example.org, kind: Bucket, mutation: delete, generation: 2, initiator: hans, policy: p, id: \"2.0\", source: {type: Deletion, name: p}, " +
			"trace: [{kind: Store, name: s, generation: 2, field: delete}]}]'}"
	)

	xr := func(metadata string) string {
		return "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, uid: s, generation: 2, " + metadata + "}, " + refs + "}"
	}
	below := ", ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: mall, uid: mall, controller: true}]"
	above := func(metadata string) string {
		return "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: mall, namespace: a, uid: mall, " + metadata + "}, spec: {}}"
	}
	cases := map[string]struct {
		reason, parent string
		released       bool
		// grant and stays are what its child is given.
		grant, stays bool
		// child is what its metadata has besides.
		child string
		// owner of the parent, which waits for it, or not.
		owner string
		waits bool
		// foreground is whether it still waits for what it owns.
		foreground bool
		// cached is the parent as the cache shows it; as it is where empty.
		cached string
	}{
		"Granted": {reason: "Its deletion was granted: the child gets what that gives.", parent: xr(going + granted), released: true, grant: true},
		"Begun": {
			reason: "So it does where its own end has begun: in the foreground the garbage collector comes first.", parent: xr(going + granted),
			child: ", " + going, released: true, grant: true,
		},
		"Nothing": {reason: "It gives nothing: the child stays, and that is told.", parent: xr(going), released: true, stays: true},
		"NothingInForeground": {
			reason: "Nobody waits for what stays.", parent: xr(strings.Replace(going, "other", "other, foregroundDeletion", 1)), released: true, stays: true,
		},
		"GrantedInForeground": {
			reason: "What goes is waited for.", parent: xr(strings.Replace(going, "other", "foregroundDeletion", 1) + granted), released: true, grant: true, foreground: true,
		},
		"Orphans": {reason: "Who orphans what it owns gives it nothing.", parent: xr(strings.Replace(going, "other", "orphan", 1)), released: true},
		"Stays":   {reason: "What is not being deleted stays.", parent: xr("finalizers: [" + v1alpha1.Finalizer + "]")},
		"Composing": {
			reason: "Crossplane composes until its own finalizer is gone, and would call off what is given before.",
			parent: xr(strings.Replace(going, "other", "composite.apiextensions.crossplane.io", 1) + granted),
		},
		"BehindItsGrant": {
			reason: "The cache does not show the grant yet.", parent: xr(going + granted), cached: xr(going), released: true, grant: true,
		},
		"BehindItsReferences": {
			reason: "Nor what it owns.", parent: xr(going + granted), cached: strings.Replace(xr(going+granted), refs, "spec: {}", 1),
			released: true, grant: true,
		},
		"Awaits": {
			reason: "What its own owner gives has not come yet.", parent: xr(going + below), owner: above(going), waits: true,
		},
		"Passed":   {reason: "That has.", parent: xr(going + below), owner: above("deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [foregroundDeletion]"), released: true, stays: true},
		"NotGoing": {reason: "That stays.", parent: xr(going + below), owner: above("finalizers: [" + v1alpha1.Finalizer + "]"), released: true, stays: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parent, child := fixture.Parse(t, tc.parent), fixture.Parse(t, bucket(owned+tc.child, "managementPolicies: [Observe, LateInitialize]"))
			objects := []client.Object{parent, child}
			if tc.owner != "" {
				objects = append(objects, fixture.Parse(t, tc.owner))
			}

			o, c := owning(t, objects...)

			cached := parent
			if tc.cached != "" {
				cached = fixture.Parse(t, tc.cached)
				o.Client = behind{c, cached}
			}

			if waits, err := o.Release(t.Context(), cached); err != nil || waits != tc.waits {
				t.Fatalf("%s\nwaits: %t, %v", tc.reason, waits, err)
			}

			live := object.New(parent.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(parent), live); err != nil || object.HasFinalizer(live) == tc.released {
				t.Errorf("%s\nfinalizers %v, %v", tc.reason, live.GetFinalizers(), err)
			}

			if got := slices.Contains(live.GetFinalizers(), metav1.FinalizerDeleteDependents); got != tc.foreground {
				t.Errorf("%s\nfinalizers %v", tc.reason, live.GetFinalizers())
			}

			after := object.New(child.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(child), after); err != nil {
				t.Fatal(err)
			}

			if got := strings.Contains(after.GetAnnotations()[v1alpha1.AnnotationAllowances]+after.GetAnnotations()[v1alpha1.AnnotationTrace], "hans"); got != tc.grant {
				t.Errorf("%s\nannotations %v", tc.reason, after.GetAnnotations())
			}

			if list := told(t, c); (len(list) == 2) != tc.stays {
				t.Errorf("%s\ntold %v", tc.reason, list)
			}
		})
	}
}

func TestAllThatWaitsForUsIsReleasedWithItsKind(t *testing.T) {
	waits := fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: a, namespace: a, uid: a, finalizers: [other, "+v1alpha1.Finalizer+"]}}")
	other := fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: b, namespace: a, uid: b, finalizers: [other]}}")
	o, c := owning(t, waits, other)

	if err := o.ReleaseAll(t.Context(), waits.GroupVersionKind()); err != nil {
		t.Fatal(err)
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(waits.GroupVersionKind())

	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	for _, u := range list.Items {
		if !slices.Equal(u.GetFinalizers(), []string{"other"}) {
			t.Errorf("%s has finalizers %v", u.GetName(), u.GetFinalizers())
		}
	}
}

// TestAKindIsReleasedAPageAtATime so that the memory of the manager does not depend on how many objects there are. In the
// meantime the API server forgets where the first page ended.
func TestAKindIsReleasedAPageAtATime(t *testing.T) {
	const n = 2*pageSize + 1

	objects := make([]client.Object, n)

	for i := range objects {
		objects[i] = fixture.Parse(t, fmt.Sprintf("{apiVersion: shop.example.org/v1, kind: Store, "+
			"metadata: {name: s%04d, namespace: a, uid: s%[1]d, finalizers: [%s]}}", i, v1alpha1.Finalizer))
	}

	o, c := owning(t, objects...)
	live := &paging{WithWatch: c, expires: 2}
	o.Live = live
	gvk := objects[0].GetObjectKind().GroupVersionKind()

	if err := o.ReleaseAll(t.Context(), gvk); err != nil {
		t.Fatal(err)
	}

	if live.most != pageSize || live.lists != 1+1+3 {
		t.Errorf("%d lists of at most %d objects", live.lists, live.most)
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	if err := c.List(t.Context(), list); err != nil || len(list.Items) != n {
		t.Fatal(len(list.Items), err)
	}

	if i := slices.IndexFunc(list.Items, func(u unstructured.Unstructured) bool { return object.HasFinalizer(&u) }); i >= 0 {
		t.Errorf("%s still waits", list.Items[i].GetName())
	}
}

// paging is an API server that lists as many objects as it is asked for.
type paging struct {
	client.WithWatch

	// expires is the list that comes too late to go on.
	expires, lists, most int
}

func (p *paging) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	p.lists++
	if p.lists == p.expires {
		return apierrors.NewResourceExpired("the continue token is too old")
	}

	if err := p.WithWatch.List(ctx, into, opts...); err != nil {
		return err
	}

	list, ok := into.(*unstructured.UnstructuredList)
	if !ok {
		return fmt.Errorf("a list of %T", into)
	}

	o, first := (&client.ListOptions{}).ApplyOptions(opts), 0
	if o.Continue != "" {
		var err error
		if first, err = strconv.Atoi(o.Continue); err != nil {
			return err
		}
	}

	list.Items = list.Items[first:]

	if limit := int(o.Limit); limit > 0 && len(list.Items) > limit {
		list.Items = list.Items[:limit]
		list.SetContinue(strconv.Itoa(first + limit))
	}

	p.most = max(p.most, len(list.Items))

	return nil
}
