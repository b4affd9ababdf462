// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	runsRevision = `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositionRevision, metadata: {name: stores-1},
		spec: {compositeTypeRef: {apiVersion: shop.example.org/v1, kind: XStore}, pipeline: [{step: k, functionRef: {name: function-kausality}}]}}`
	plainRevision = `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositionRevision, metadata: {name: malls-1},
		spec: {compositeTypeRef: {apiVersion: shop.example.org/v1, kind: XMall}, pipeline: [{step: o, functionRef: {name: other}}]}}`
	store = `{apiVersion: shop.example.org/v1, kind: XStore, metadata: {name: corner, uid: s},
		spec: {claimRef: {apiVersion: shop.example.org/v1, kind: Store, name: corner, namespace: a},
			crossplane: {compositionRevisionRef: {name: stores-1}, resourceRefs: [{apiVersion: aws.example.org/v1, kind: Bucket, name: b}]}}}`
)

func served(kinds ...schema.GroupVersionKind) []kind.Served {
	out := make([]kind.Served, len(kinds))
	for i, k := range kinds {
		out[i] = kind.Served{GVK: k}
	}

	return out
}

func TestKindsThatXRsComposeByTheFunctionAreFound(t *testing.T) {
	revision := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
	shop := func(k string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: k}
	}
	bucket := schema.GroupVersionKind{Group: "aws.example.org", Version: "v1", Kind: "Bucket"}
	all := served(revision, shop("XStore"), shop("XMall"), shop("Store"), bucket)

	objects := make([]unstructured.Unstructured, 0, 3)
	for _, text := range []string{runsRevision, plainRevision, store} {
		objects = append(objects, *fixture.Parse(t, text))
	}

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	w := watch.NewWatches(&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}, Objects: objects}, time.Now)
	w.Object = func(schema.GroupVersionKind) reconcile.Reconciler {
		return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	}

	t.Cleanup(w.Stop)

	c := &Kinds{Functions: []string{"function-kausality"}, Watches: w, Prompt: watch.NewPrompt()}

	read := func(complete bool) Findings {
		t.Helper()

		f, err := c.Read(t.Context(), all)
		if err != nil || f.Complete != complete {
			t.Fatalf("complete %v, want %v; %v", f.Complete, complete, err)
		}

		return f
	}

	// Nothing is known before CompositionRevisions are watched, nor all before XRs are.
	if f := read(false); len(f.Revisions) > 0 {
		t.Errorf("found %v", f.Revisions)
	}

	if err := w.Run(t.Context(), served(revision)); err != nil {
		t.Fatal(err)
	}

	f := read(false)
	if diff := cmp.Diff(map[string]bool{"stores-1": true, "malls-1": false}, f.Revisions); diff != "" {
		t.Errorf("revisions, -want, +got:\n%s", diff)
	}

	if diff := cmp.Diff(served(revision, shop("XStore")), f.Watched(all)); diff != "" {
		t.Errorf("watched, -want, +got:\n%s", diff)
	}

	if err := w.Run(t.Context(), f.Watched(all)); err != nil {
		t.Fatal(err)
	}

	f = read(true)
	if diff := cmp.Diff(map[schema.GroupKind]bool{bucket.GroupKind(): true}, f.Kinds); diff != "" {
		t.Errorf("composed, -want, +got:\n%s", diff)
	}

	c.Set(f, served(shop("XMall")), nil)

	if err := c.EnqueueNotRun(t.Context(), all, f); err != nil {
		t.Error(err)
	}

	if diff := cmp.Diff(served(shop("Store")), c.Parents(all)); diff != "" {
		t.Errorf("parents, -want, +got:\n%s", diff)
	}

	xr, other := fixture.Parse(t, store), fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: Other}")
	if !c.Governs(xr) || !c.Governs(fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: XMall}")) || c.Governs(other) {
		t.Error("an XR that runs the function is governed, and what is named")
	}

	if !c.Ungoverned(bucket.GroupKind()) || c.Ungoverned(shop("XStore").GroupKind()) || c.Ungoverned(shop("Other").GroupKind()) {
		t.Error("nothing is passed on to what is composed and has no gate")
	}

	asks := func(what string, want bool) {
		t.Helper()

		select {
		case <-c.Prompt.Now:
			if !want {
				t.Errorf("%s: asks for the kinds to be read", what)
			}
		default:
			if want {
				t.Errorf("%s: does not ask for the kinds to be read", what)
			}
		}
	}

	c.Observe(xr)
	asks("what is known", false)

	refs, _, _ := unstructured.NestedSlice(xr.Object, "spec", "crossplane", "resourceRefs")
	if err := unstructured.SetNestedSlice(xr.Object, append(refs, map[string]any{"apiVersion": "aws.example.org/v1", "kind": "Queue", "name": "q"}),
		"spec", "crossplane", "resourceRefs"); err != nil {
		t.Fatal(err)
	}

	c.Observe(xr)
	asks("a new kind", true)

	c.Forget(other.GroupVersionKind())
	c.Forget(xr.GroupVersionKind())
	asks("an XR that is gone, at once", false)
}

func TestWhatXRsBelowComposeIsFound(t *testing.T) {
	revision := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
	kindOf := func(k string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: k}
	}
	all := served(revision, kindOf("XStore"), kindOf("Shelf"), kindOf("Board"))

	plain := func(kind string) string {
		return strings.NewReplacer("malls-1", strings.ToLower(kind)+"-1", "XMall", kind).Replace(plainRevision)
	}
	below := func(kind, uid, owner, composes string) string {
		return "{apiVersion: shop.example.org/v1, kind: " + kind + ", metadata: {name: " + uid + ", uid: " + uid +
			", ownerReferences: [{apiVersion: shop.example.org/v1, kind: K, name: o, uid: " + owner + ", controller: true}]}," +
			" spec: {crossplane: {compositionRevisionRef: {name: " + strings.ToLower(kind) + "-1}, resourceRefs: [{apiVersion: shop.example.org/v1, kind: " + composes + ", name: x}]}}}"
	}

	objects := make([]unstructured.Unstructured, 0, 7)
	for _, text := range []string{
		runsRevision, plain("Shelf"), plain("Board"), strings.Replace(store, "apiVersion: aws.example.org/v1, kind: Bucket", "apiVersion: shop.example.org/v1, kind: Shelf", 1),
		below("Shelf", "one", "s", "Board"), below("Shelf", "alone", "nobody", "Vase"), below("Board", "b", "one", "Book"),
	} {
		objects = append(objects, *fixture.Parse(t, text))
	}

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	w := watch.NewWatches(&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}, Objects: objects}, time.Now)
	w.Object = func(schema.GroupVersionKind) reconcile.Reconciler {
		return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	}

	t.Cleanup(w.Stop)

	c := &Kinds{Functions: []string{"function-kausality"}, Watches: w, Prompt: watch.NewPrompt()}
	watched := served(revision)

	for range 4 { // One level after the other.
		if err := w.Run(t.Context(), watched); err != nil {
			t.Fatal(err)
		}

		f, err := c.Read(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}

		watched = f.Watched(all)
		c.Set(f, nil, nil)
	}

	want := map[schema.GroupKind]bool{kindOf("Shelf").GroupKind(): true, kindOf("Board").GroupKind(): true, kindOf("Book").GroupKind(): true}
	if diff := cmp.Diff(want, c.known.Kinds); diff != "" || !c.known.Complete {
		t.Errorf("complete %t, -want, +got:\n%s", c.known.Complete, diff)
	}

	for text, soon := range map[string]bool{
		below("Shelf", "one", "s", "Board"): false, below("Shelf", "two", "s", "Lamp"): true, below("Shelf", "alone", "nobody", "Vase"): false,
	} {
		c.Observe(fixture.Parse(t, text))

		select {
		case <-c.Prompt.Now:
			if !soon {
				t.Errorf("%s asks for the kinds to be read", text)
			}
		default:
			if soon {
				t.Errorf("%s does not ask for the kinds to be read", text)
			}
		}
	}
}
