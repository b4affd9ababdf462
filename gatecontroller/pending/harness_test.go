// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const own = "kausality-system"

// harness is a Reconciler of a small cluster.
type harness struct {
	Reconciler *Reconciler

	client client.WithWatch
	reg    *prometheus.Registry
	// unwatched are kinds that are not in the cache, and lacking objects of others, as KIND NAME.
	unwatched, lacking map[string]bool
	// writes are those to the API server, as VERB KIND NAME, and live what was read from it.
	writes, live []string
	// fail are errors of requests, by VERB KIND.
	fail map[string]error
	// read is called once an object was read from the cache.
	read func(name string)
	now  time.Time
}

func newHarness(t *testing.T, texts ...string) *harness {
	t.Helper()

	h := &harness{
		now: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC), reg: prometheus.NewRegistry(),
		unwatched: map[string]bool{}, lacking: map[string]bool{}, fail: map[string]error{},
	}

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		{Group: "example.org", Version: "v1"}, {Group: "apps", Version: "v1"}, v1alpha1.GroupVersion(),
	})
	for kind, scope := range map[string]meta.RESTScope{
		"Store": meta.RESTScopeNamespace, "XStore": meta.RESTScopeRoot, "XShelf": meta.RESTScopeRoot, "Instance": meta.RESTScopeRoot, "Lab": meta.RESTScopeNamespace,
		"Loop": meta.RESTScopeNamespace,
	} {
		mapper.Add(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind}, scope)
	}

	for _, kind := range []string{"Deployment", "ReplicaSet"} {
		mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}

	for _, gvk := range []schema.GroupVersionKind{resource.RevisionKind().WithVersion("v1"), pending.FunctionRevisionKind()} {
		mapper.Add(gvk, meta.RESTScopeRoot)
	}

	for _, gvk := range []schema.GroupVersionKind{v1alpha1.GroupVersion().WithKind("PendingChange"), v1alpha1.GroupVersion().WithKind("ChangeApproval")} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}

	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithStatusSubresource(&v1alpha1.PendingChange{})
	for _, text := range texts {
		builder = builder.WithObjects(fixture.Parse(t, text))
	}

	h.client = builder.Build()
	h.Reconciler = newReconciler(t, h, mapper)

	return h
}

func newReconciler(t *testing.T, h *harness, mapper meta.RESTMapper) *Reconciler {
	t.Helper()

	// scoped leaves out the namespace of what has none, as clients do.
	scoped := func(key client.ObjectKey, obj client.Object) client.ObjectKey {
		m, err := mapper.RESTMapping(obj.GetObjectKind().GroupVersionKind().GroupKind())
		if err == nil && m.Scope.Name() == meta.RESTScopeNameRoot {
			key.Namespace = ""
		}

		return key
	}

	note := func(verb string, obj client.Object) error {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		if _, ok := obj.(*v1alpha1.PendingChange); ok {
			kind = "PendingChange"
		}

		if err := h.fail[verb+" "+kind]; err != nil {
			return err
		}

		if verb == "get" {
			h.live = append(h.live, kind+" "+obj.GetName())
		} else {
			h.writes = append(h.writes, verb+" "+kind)
		}

		return nil
	}

	writing := interceptor.NewClient(h.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := note("create", obj); err != nil {
				return err
			}

			obj.SetCreationTimestamp(metav1.NewTime(h.now))
			obj.SetUID("pch")

			return c.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", obj); err != nil {
				return err
			}

			if err := h.another(ctx, obj, opts); err != nil {
				return err
			}

			return c.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := note("patch "+sub, obj); err != nil {
				return err
			}

			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	})
	live := interceptor.NewClient(h.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			kind := obj.GetObjectKind().GroupVersionKind().Kind
			if err := h.fail["get "+kind]; err != nil {
				return err
			}

			h.live = append(h.live, kind+" "+key.Name)

			return c.Get(ctx, scoped(key, obj), obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			kind := list.GetObjectKind().GroupVersionKind().Kind
			if err := h.fail["list "+kind]; err != nil {
				return err
			}

			h.live = append(h.live, "list "+kind)

			return c.List(ctx, list, opts...)
		},
	})

	cached := interceptor.NewClient(h.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			name := obj.GetObjectKind().GroupVersionKind().Kind + " " + key.Name
			if h.lacking[name] {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}

			err := c.Get(ctx, scoped(key, obj), obj, opts...)
			if h.read != nil {
				h.read(name)
			}

			return err
		},
	})

	m, err := NewMetrics(h.reg, func() time.Time { return h.now })
	if err != nil {
		t.Fatal(err)
	}

	return (&Reconciler{
		Client: writing, Namespace: own, Now: func() time.Time { return h.now },
		Composes: func(gk schema.GroupKind) bool { return gk.Kind == "XStore" || gk.Kind == "XShelf" || gk.Kind == "Lab" },
		Objects: Objects{
			Cache: cached, Live: live, Mapper: mapper,
			Known: func(_ context.Context, gk schema.GroupKind) (schema.GroupVersionKind, bool) {
				return gk.WithVersion("v1"), !h.unwatched[gk.Kind]
			},
		},
	}).Init(m)
}

// another is the conflict of a deletion of an object that has another UID by now, as the API server says.
func (h *harness) another(ctx context.Context, obj client.Object, opts []client.DeleteOption) error {
	var by client.DeleteOptions

	by.ApplyOptions(opts)

	now := &v1alpha1.PendingChange{}
	if err := h.client.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil || by.Preconditions == nil {
		return err
	}

	if uid := by.Preconditions.UID; uid != nil && *uid != now.UID {
		return apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), nil)
	}

	return nil
}

// restart has the manager forget all it knows, and hear of PendingChanges.
func (h *harness) restart(t *testing.T) {
	t.Helper()

	h.Reconciler.index = newIndex()
	h.Reconciler.metrics.index.Store(h.Reconciler.index)

	list := &v1alpha1.PendingChangeList{}
	if err := h.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	for i := range list.Items {
		h.Reconciler.index.ask(pending.KeyOf(list.Items[i].Spec.ObjectRef))
	}
}

// observe has the manager hear of objects, as KIND NAME, and do what it asks itself to.
func (h *harness) observe(t *testing.T, names ...string) reconcile.Result {
	t.Helper()

	for _, name := range names {
		if err := h.Reconciler.Observe(t.Context(), h.get(t, name)); err != nil {
			t.Fatal(err)
		}
	}

	return h.run(t)
}

// run reconciles what there is to.
func (h *harness) run(t *testing.T) reconcile.Result {
	t.Helper()

	var res reconcile.Result

	for range 10 {
		roots := slices.SortedFunc(maps.Keys(h.Reconciler.index.waiting), pending.CompareKeys)
		clear(h.Reconciler.index.waiting)

		if len(roots) == 0 {
			return res
		}

		for _, root := range roots {
			var err error

			if res, err = h.Reconciler.Reconcile(t.Context(), root); err != nil {
				t.Fatal(err)
			}
		}
	}

	t.Fatal("it asks for itself for ever")

	return res
}

// asked are the roots that are to be reconciled.
func (h *harness) asked() []string {
	out := make([]string, 0, len(h.Reconciler.index.waiting))

	for root := range h.Reconciler.index.waiting {
		out = append(out, root.Kind+" "+root.Name)
	}

	slices.Sort(out)

	return out
}

// get reads an object, as KIND NAME, in namespace team-a where its kind has one.
func (h *harness) get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()

	u, key := h.empty(t, name)
	if err := h.client.Get(t.Context(), key, u); err != nil {
		t.Fatal(err)
	}

	return u
}

func (h *harness) empty(t *testing.T, name string) (*unstructured.Unstructured, client.ObjectKey) {
	t.Helper()

	var kind string

	key := client.ObjectKey{Namespace: "team-a"}
	if _, err := fmt.Sscan(name, &kind, &key.Name); err != nil {
		t.Fatal(err)
	}

	gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind}
	if kind == "Deployment" || kind == "ReplicaSet" {
		gvk.Group = "apps"
	}

	if m, err := h.Reconciler.Objects.Mapper.RESTMapping(gvk.GroupKind()); err != nil {
		t.Fatal(err)
	} else if m.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}

	return object.New(gvk), key
}

// change changes an object.
func (h *harness) change(t *testing.T, name string, change func(u *unstructured.Unstructured)) {
	t.Helper()

	u := h.get(t, name)
	change(u)

	if err := h.client.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object, of which the manager hears.
func (h *harness) remove(t *testing.T, name string) {
	t.Helper()

	u := h.get(t, name)
	if err := h.client.Delete(t.Context(), u); err != nil {
		t.Fatal(err)
	}

	h.Reconciler.Gone(u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u))
}

// pch is the PendingChange there is; nil for none.
func (h *harness) pch(t *testing.T) *v1alpha1.PendingChange {
	t.Helper()

	list := &v1alpha1.PendingChangeList{}
	if err := h.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	switch len(list.Items) {
	case 0:
		return nil
	case 1:
		return &list.Items[0]
	default:
		t.Fatalf("there are %d: %+v", len(list.Items), list.Items)

		return nil
	}
}

// lines are the changes of the PendingChange, as OBJECT FIELD of PARENT.
func (h *harness) lines(t *testing.T) []string {
	t.Helper()

	pch := h.pch(t)
	if pch == nil {
		return nil
	}

	var out []string

	for _, e := range pch.Status.Changes {
		line := e.Ref.Name + " " + e.Field
		if e.Parent != nil {
			line += " of " + e.Parent.Name
		}

		out = append(out, line)
	}

	return out
}

func sha(text string) string {
	return digest.OfList([]string{text})
}

// say sets the conditions of an XR or a Claim.
func say(u *unstructured.Unstructured, typ, status, reason, message string) {
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": typ, "status": status, "reason": reason, "message": message}}}
}

// lists has an XR list changes.
func lists(entries ...v1alpha1.HeldChange) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		status, reason := "False", v1alpha1.ReasonHeld
		if len(entries) == 0 {
			status, reason = "True", v1alpha1.ReasonAllowed
		}

		say(u, v1alpha1.ConditionState, status, reason, resource.FormatState(v1alpha1.State{Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 1}, Changes: entries}))
	}
}

// instance is a change of what the XR composes.
func instance(name, field string) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{
		Ref: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Instance", Name: name, UID: "i"}, ComposedResource: "db",
		Field: field, From: "1", To: "2", Digest: sha(name + field),
	}
}

// holding has an object say that changes of fields are held; none for nothing.
func holding(fields ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		var text strings.Builder
		for _, f := range fields {
			fmt.Fprintf(&text, "- {field: %s, from: a, to: b, user: eve, reason: r, digest: %q}\n", f, sha(u.GetName()+f))
		}

		annotations := map[string]string{}
		if text.Len() > 0 {
			annotations[v1alpha1.AnnotationHeld] = text.String()
		}

		u.SetAnnotations(annotations)
	}
}
